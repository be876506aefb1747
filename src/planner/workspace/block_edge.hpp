// The blocks of C that have a number of slices of their own (dgemm-tc, section 4.2).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/view.hpp"

namespace kintsugi::core {

// Rows or columns of each of the equal blocks that a length is cut into.
inline std::int64_t block_edge(std::int64_t length, std::int64_t most) {
  return divide_up(length, divide_up(length, std::min(most, length)));
}

}  // namespace kintsugi::core
