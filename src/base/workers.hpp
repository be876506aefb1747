// Number of threads of a loop.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/fork.hpp"

namespace kintsugi::core {

// Number of threads for `pieces` pieces of work: at most one per piece, since a thread that cannot be created
// ends the program in libgomp; 1 in a forked child.
inline int workers_for(std::int64_t pieces, int threads) {
  return static_cast<int>(
      std::clamp<std::int64_t>(usable_threads(threads), 1, std::max<std::int64_t>(pieces, 1)));
}

}  // namespace kintsugi::core
