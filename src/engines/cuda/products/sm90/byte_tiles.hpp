// Products of int8 slices: the kernels' tiles, what they are handed, and which tile suits a product.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/memory.hpp"
#include "engines/cuda/products/sm90/arguments.hpp"
#include "engines/device.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// What a cluster computes at once: its two blocks of threads have the same rows of C or the same columns, whose slices
// either copies a half of to both. In a block two warpgroups multiply, each all rows by half of the columns. The matrix
// unit's B is C's rows, so that a thread's sums are neighbours in memory.
struct ByteTile {
  int block_rows;
  int block_columns;
  bool shares_rows;
  // Measured on an H200, of a cluster: microseconds of a block of k, and of a tile besides.
  float block_time;
  float tile_time;

  static constexpr int block = 128;  // inner indices
  static constexpr int places = 4;   // in shared memory, for a block of k of the slices
  static constexpr int threads = 384;

  constexpr int rows() const { return block_rows * (shares_rows ? 1 : blocks_of_cluster); }
  constexpr int columns() const { return block_columns * (shares_rows ? blocks_of_cluster : 1); }
  // That a block of threads copies.
  constexpr int copied_rows() const { return block_rows / (shares_rows ? blocks_of_cluster : 1); }
  constexpr int copied_columns() const { return block_columns / (shares_rows ? 1 : blocks_of_cluster); }
  constexpr int place_bytes() const { return (block_rows + block_columns) * block; }
  constexpr int shared_bytes() const { return places * place_bytes() + 1024; }
};

// Of the 128 bytes that shared memory has in a cycle, the wide tile's products read 85 and copies write 37; of the narrow one,
// for products that do not fill the wide one, it is 80 and 48.
inline constexpr std::array byte_tiles{ByteTile{192, 256, false, 1.05F, 3.2F},
                                       ByteTile{256, 128, true, 0.77F, 1.6F}};

// A product of slices, whose sums all terms of a group have together.
struct ByteTerm {
  std::int16_t a;
  std::int16_t b;
};

struct ByteProducts {
  // Its entries are the groups, last ones first, which are those with the most terms; its blocks are those of a term.
  Walk walk;
  DeviceCondition condition;
  std::byte* sums = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::uint16_t moduli[max_groups] = {};  // of residues
  std::uint16_t first_term[max_groups + 1] = {};
  ByteTerm terms[max_groups] = {};

  KINTSUGI_HOST_DEVICE int group(const TilePlace& place) const { return walk.entries - 1 - place.entry; }
  KINTSUGI_HOST_DEVICE int blocks(int group) const {
    return walk.blocks * (first_term[group + 1] - first_term[group]);
  }
};

// How many products there are of which size.
struct ByteShape {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t k;
  int groups;
  int terms;
};

struct ByteChoice {
  std::size_t tile = 0;
  Walk walk;
  float microseconds = 0;
};

constexpr Walk byte_walk(const ByteTile& tile, const ByteShape& shape, std::int32_t clusters) {
  const auto count = [](std::int64_t length, std::int64_t side) {
    return static_cast<std::int32_t>(divide_up(length, side));
  };
  return make_whole_walk(count(shape.rows, tile.rows()), count(shape.columns, tile.columns()), shape.groups,
                         count(shape.k, ByteTile::block), clusters);
}

constexpr ByteChoice choose_byte_tile(const ByteShape& shape, std::int32_t clusters) {
  ByteChoice best;
  for (std::size_t i = 0; i < byte_tiles.size(); ++i) {
    const ByteTile& tile = byte_tiles[i];
    const Walk walk = byte_walk(tile, shape, clusters);
    const int waves = walk.waves + (walk.left() > 0 ? 1 : 0);
    const float blocks =
        static_cast<float>(walk.blocks) * static_cast<float>(shape.terms) / static_cast<float>(shape.groups);
    const float time = static_cast<float>(waves) * (blocks * tile.block_time + tile.tile_time);
    if (i == 0 || time < best.microseconds) best = {i, walk, time};
  }
  return best;
}

}  // namespace kintsugi::core::cuda
