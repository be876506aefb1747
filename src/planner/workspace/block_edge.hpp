// Size of the blocks of C into which Ozaki scheme I divides C: each has its own number of slices (dgemm-tc,
// section 4.2).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/view.hpp"

namespace kintsugi::core {

// Returns the rows or columns of a block if `length` of them are cut into the fewest blocks of equal size
// that have at most `max_edge`.
inline std::int64_t block_edge(std::int64_t length, std::int64_t max_edge) {
  return divide_up(length, divide_up(length, std::min(max_edge, length)));
}

}  // namespace kintsugi::core
