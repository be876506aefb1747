// Which tile suits a product: by the time that its clusters are expected to take.
#pragma once

#include <cstdint>
#include <span>

#include "base/memory.hpp"
#include "engines/cuda/products/sm90/arguments.hpp"

namespace kintsugi::core::cuda {

struct TermChoice {
  std::size_t tile = 0;
  Walk walk;
  double microseconds = 0;
};

// One of a structure's tiles, for rows, columns and inner indices of each of `entries` products; how many clusters the device holds.
constexpr TermChoice choose_tile(std::span<const TermTile> tiles, std::int64_t rows, std::int64_t columns,
                                 std::int64_t entries, std::int64_t k, std::int32_t clusters) {
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  TermChoice best;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const TermTile& tile = tiles[i];
    const Walk walk = make_walk(count(rows, term_tile_rows), count(columns, tile.columns),
                                static_cast<std::int32_t>(entries), count(k, term_block), clusters);
    const int waves = walk.waves + (walk.left() > 0 ? 1 : 0);
    const double all =
        static_cast<double>(std::int64_t{walk.waves} * walk.blocks + blocks_of_left(walk, walk.parts));
    const double time = all * tile.block_time + waves * double{tile.tile_time};
    if (i == 0 || time < best.microseconds) best = {i, walk, time};
  }
  return best;
}

}  // namespace kintsugi::core::cuda
