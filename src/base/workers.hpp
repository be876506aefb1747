// How many threads a loop is worth.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fork.hpp"

namespace kintsugi::core {

// No more threads than pieces of work: a thread that cannot be made ends the program in libgomp. In a forked
// child one.
inline int workers_for(std::int64_t pieces, int threads) {
  return static_cast<int>(
      std::clamp<std::int64_t>(usable_threads(threads), 1, std::max<std::int64_t>(pieces, 1)));
}

}  // namespace kintsugi::core
