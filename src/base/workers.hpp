// How many threads a loop is worth.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kintsugi::core {

// No more threads than pieces of work: a thread that cannot be made ends the program in libgomp.
inline int workers_for(std::int64_t pieces, int threads) {
  return static_cast<int>(std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(pieces, 1)));
}

}  // namespace kintsugi::core
