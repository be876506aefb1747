// Expected time of products whose thread blocks compute a tile of C each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/view.hpp"

namespace kintsugi::core::cuda {

// Of `count` tiles, in units of `time`, which is that of as many tiles as a device has at once. A block that
// has an SM alone, where others would have a share, takes two thirds of it.
inline double tile_time(std::int64_t count, std::int64_t sm_count, int at_once, double time) {
  constexpr double alone = 0.66;
  const auto of_an_sm = static_cast<double>(divide_up(count, sm_count));
  return time * (at_once == 1 ? of_an_sm : std::max(of_an_sm / at_once, alone));
}

}  // namespace kintsugi::core::cuda
