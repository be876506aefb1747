// Sizes of the blocks of C that each have their own number of slices (dgemm-tc, section 4.2).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/view.hpp"

namespace kintsugi::core {

// Rows or columns of each block if a length is cut into the fewest equal blocks of at most `max_edge`.
inline std::int64_t block_edge(std::int64_t length, std::int64_t max_edge) {
  return divide_up(length, divide_up(length, std::min(max_edge, length)));
}

}  // namespace kintsugi::core
