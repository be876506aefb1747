// Which cluster of blocks computes which part of C, and when. Sums are added in ascending k whoever adds them: a tile may
// be begun by one cluster, which hands its sums over, and ended by another, so that no bit depends on how many clusters
// there are.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::core::cuda {

// A tile of C by its number, or, where tiles are cut, the part of its inner blocks that a cluster adds.
struct Piece {
  std::int32_t tile = 0;
  std::int32_t part = 0;
};

// Where a tile lies.
struct TilePlace {
  std::int32_t entry = 0;  // of the batch
  std::int32_t row = 0;    // of tiles
  std::int32_t column = 0;
};

// Whole tiles go to the clusters in turn, wave by wave. The tiles of the last wave, where it would leave clusters without
// work, are cut along k: their parts are spread over the waves, the first before them and the last behind them, so that
// who goes on with a tile never waits, and clusters at work on parts of the same number share what they load.
struct Walk {
  std::int32_t rows = 0;  // of tiles
  std::int32_t columns = 0;
  std::int32_t entries = 1;
  std::int32_t blocks = 0;  // of k
  std::int32_t clusters = 1;
  std::int32_t waves = 0;  // of whole tiles
  std::int32_t parts = 1;  // of those that are left

  // Columns of tiles that clusters at work at the same time keep in the L2 cache together with as many rows.
  static constexpr std::int32_t group = 8;

  KINTSUGI_HOST_DEVICE constexpr std::int64_t tiles() const { return std::int64_t{rows} * columns * entries; }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t whole() const { return waves * clusters; }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t left() const {
    return static_cast<std::int32_t>(tiles()) - whole();
  }

  // Neighbours in a group of columns follow each other.
  KINTSUGI_HOST_DEVICE constexpr TilePlace place(const Piece& piece) const {
    const std::int32_t inside = piece.tile % (rows * columns);
    const std::int32_t first = inside / (group * rows) * group;
    const std::int32_t width = columns - first < group ? columns - first : group;
    const std::int32_t rest = inside - first * rows;
    return {piece.tile / (rows * columns), rest / width, first + rest % width};
  }

  // The tile's number among those that are cut; negative: it is not.
  KINTSUGI_HOST_DEVICE constexpr std::int32_t shared(const Piece& piece) const {
    return piece.tile - whole();
  }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t parts_of(const Piece& piece) const {
    return shared(piece) < 0 ? 1 : parts;
  }
  KINTSUGI_HOST_DEVICE constexpr bool continues(const Piece& piece) const { return piece.part > 0; }
  KINTSUGI_HOST_DEVICE constexpr bool hands_over(const Piece& piece) const {
    return piece.part + 1 < parts_of(piece);
  }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t first_block(const Piece& piece) const {
    return piece.part == 0 ? 0 : piece.part * blocks / parts;
  }
  KINTSUGI_HOST_DEVICE constexpr std::int32_t end_block(const Piece& piece) const {
    return hands_over(piece) ? (piece.part + 1) * blocks / parts : blocks;
  }
};

// What a hand-over costs, in blocks of k: 200 KB of sums are written and read.
inline constexpr std::int32_t blocks_of_hand_over = 4;
inline constexpr std::int32_t most_parts = 4;

// How long all clusters are busy with the tiles that are left, in blocks of k.
KINTSUGI_HOST_DEVICE constexpr std::int32_t blocks_of_left(const Walk& walk, std::int32_t parts) {
  const std::int32_t turns = (walk.left() * parts + walk.clusters - 1) / walk.clusters;
  return turns * (walk.blocks / parts + (parts > 1 ? blocks_of_hand_over : 0));
}

// Every tile is its cluster's alone.
constexpr Walk make_whole_walk(std::int32_t rows, std::int32_t columns, std::int32_t entries,
                               std::int32_t blocks, std::int32_t clusters) {
  Walk walk{rows, columns, entries, blocks, clusters, 0, 1};
  if (walk.tiles() == 0) return walk;
  if (walk.tiles() <= clusters) walk.clusters = static_cast<std::int32_t>(walk.tiles());
  walk.waves = static_cast<std::int32_t>(walk.tiles() / walk.clusters);
  return walk;
}

constexpr Walk make_walk(std::int32_t rows, std::int32_t columns, std::int32_t entries, std::int32_t blocks,
                         std::int32_t clusters) {
  Walk walk = make_whole_walk(rows, columns, entries, blocks, clusters);
  for (std::int32_t parts = 2; parts <= most_parts && parts <= walk.waves + 1; ++parts) {
    if (blocks >= parts && blocks_of_left(walk, parts) < blocks_of_left(walk, walk.parts)) walk.parts = parts;
  }
  return walk;
}

// The pieces of one cluster, one after the other.
class Pieces {
 public:
  KINTSUGI_HOST_DEVICE constexpr Pieces(const Walk& walk, std::int32_t cluster)
      : walk_(walk), cluster_(cluster), next_part_(cluster) {}

  KINTSUGI_HOST_DEVICE constexpr bool next(Piece& piece) {
    const bool has_part = next_part_ < walk_.left() * walk_.parts;
    if (has_part && (wave_ == walk_.waves || wave_ >= wave_of(next_part_ / walk_.left()))) {
      piece = {walk_.whole() + next_part_ % walk_.left(), next_part_ / walk_.left()};
      next_part_ += walk_.clusters;
      return true;
    }
    if (wave_ == walk_.waves) return false;
    piece = {wave_ * walk_.clusters + cluster_, 0};
    ++wave_;
    return true;
  }

 private:
  // Before which wave parts of that number are added.
  KINTSUGI_HOST_DEVICE constexpr std::int32_t wave_of(std::int32_t number) const {
    return walk_.parts == 1 ? walk_.waves : number * walk_.waves / (walk_.parts - 1);
  }

  const Walk& walk_;
  std::int32_t cluster_;
  std::int32_t next_part_;  // parts of the same number follow each other
  std::int32_t wave_ = 0;
};

}  // namespace kintsugi::core::cuda
