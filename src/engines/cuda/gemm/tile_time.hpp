// Expected time of products whose thread blocks compute one tile of C each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/view.hpp"

namespace kintsugi::core::cuda {

// Time of `count` tiles, where `time` is that of as many tiles as a device holds at once. A thread block that
// has an SM to itself, where blocks would otherwise share it, takes two thirds of `time`.
inline double tile_time(std::int64_t count, std::int64_t sm_count, int at_once, double time) {
  constexpr double alone = 0.66;
  const auto of_an_sm = static_cast<double>(divide_up(count, sm_count));
  return time * (at_once == 1 ? of_an_sm : std::max(of_an_sm / at_once, alone));
}

}  // namespace kintsugi::core::cuda
