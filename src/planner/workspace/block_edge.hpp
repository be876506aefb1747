// Size of the blocks of C in Ozaki scheme I. Each block has its own number of slices (dgemm-tc, section 4.2).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/view.hpp"

namespace kintsugi::core {

// Cuts `length` rows or columns into as few blocks of equal size as possible, with at most `max_edge` rows or
// columns each. Returns the rows or columns of a block.
inline std::int64_t block_edge(std::int64_t length, std::int64_t max_edge) {
  return divide_up(length, divide_up(length, std::min(max_edge, length)));
}

}  // namespace kintsugi::core
