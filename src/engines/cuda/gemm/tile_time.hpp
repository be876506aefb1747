// Expected time of products whose thread blocks compute one tile of C each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/view.hpp"

namespace kintsugi::core::cuda {

// Time of `count` tiles, where `time` is that of as many tiles as a device holds at once. A thread block that
// has an SM to itself, where blocks would otherwise share it, takes two thirds of `time`.
inline double tile_time(std::int64_t count, std::int64_t sm_count, int at_once, double time) {
  constexpr double alone = 0.66;
  const auto of_an_sm = static_cast<double>(divide_up(count, sm_count));
  return time * (at_once == 1 ? of_an_sm : std::max(of_an_sm / at_once, alone));
}

struct TileChoice {
  std::size_t number = 0;  // of the tile
  double time = 0;         // expected per inner index
};

// The fastest of several tiles for the rows and columns of each of `items` products. `times`: of the tiles, per
// inner index of as many as a device holds at once (NativeCosts::tile_index).
template <class Tile>
TileChoice fastest_tile(std::span<const Tile> tiles, std::span<const double> times, std::int64_t rows,
                        std::int64_t columns, std::int64_t items, std::int64_t sm_count) {
  TileChoice best;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const std::int64_t count = divide_up(rows, tiles[i].rows()) * divide_up(columns, tiles[i].columns());
    const double time = tile_time(count * items, sm_count, tiles[i].at_once, times[i]);
    if (i == 0 || time < best.time) best = {i, time};
  }
  return best;
}

}  // namespace kintsugi::core::cuda
