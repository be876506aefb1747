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
// work, are cut along k. The clusters are divided into as many ranges as a tile has parts: those of range p compute part p
// of all these tiles, part_turns of them each. The parts are spread over the waves, the first before them and the last
// behind them, so that a cluster rarely waits for the part before its own.
//
// Residency: part p of a tile is the work of a cluster with a higher number than that of part p - 1, and clusters are
// numbered in the order in which they begin. So a cluster waits only for clusters that began before it, the first one for
// none, and a product ends however few clusters the device holds at a time.
struct Walk {
  std::int32_t rows = 0;  // of tiles
  std::int32_t columns = 0;
  std::int32_t entries = 1;
  std::int32_t blocks = 0;  // of k
  std::int32_t clusters = 1;
  std::int32_t waves = 0;          // of whole tiles
  std::int32_t parts = 1;          // of those that are left
  std::int32_t part_turns = 1;     // left tiles of one cluster
  std::int32_t part_clusters = 1;  // clusters that compute parts of the same number

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

// The walk with its last tiles cut into so many parts.
constexpr Walk with_parts(Walk walk, std::int32_t parts) {
  walk.parts = parts;
  if (walk.left() == 0) return walk;
  walk.part_turns = (walk.left() * parts + walk.clusters - 1) / walk.clusters;
  walk.part_clusters = (walk.left() + walk.part_turns - 1) / walk.part_turns;
  return walk;
}

// How long clusters are busy with the tiles that are left, in blocks of k.
constexpr std::int32_t blocks_of_left(const Walk& walk) {
  if (walk.left() == 0) return 0;
  return walk.part_turns * (walk.blocks / walk.parts + (walk.parts > 1 ? blocks_of_hand_over : 0));
}

// Every tile is its cluster's alone.
constexpr Walk make_whole_walk(std::int32_t rows, std::int32_t columns, std::int32_t entries,
                               std::int32_t blocks, std::int32_t clusters) {
  Walk walk{rows, columns, entries, blocks, clusters, 0, 1};
  if (walk.tiles() == 0) return walk;
  if (walk.tiles() <= clusters) walk.clusters = static_cast<std::int32_t>(walk.tiles());
  walk.waves = static_cast<std::int32_t>(walk.tiles() / walk.clusters);
  return with_parts(walk, 1);
}

constexpr Walk make_walk(std::int32_t rows, std::int32_t columns, std::int32_t entries, std::int32_t blocks,
                         std::int32_t clusters) {
  Walk walk = make_whole_walk(rows, columns, entries, blocks, clusters);
  for (std::int32_t parts = 2; parts <= most_parts && parts <= walk.waves + 1; ++parts) {
    const Walk cut = with_parts(walk, parts);
    const bool has_clusters = cut.parts * cut.part_clusters <= clusters;
    if (blocks >= parts && has_clusters && blocks_of_left(cut) < blocks_of_left(walk)) walk = cut;
  }
  return walk;
}

// The tiles of one cluster of make_whole_walk(), one after the other.
class WholeTiles {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit WholeTiles(const Walk& walk) : walk_(walk) {}

  // `cluster` is the same number in every call.
  KINTSUGI_HOST_DEVICE constexpr bool next(std::int32_t cluster, Piece& piece) {
    piece = {wave_ * walk_.clusters + cluster, 0};
    ++wave_;
    return piece.tile < walk_.tiles();
  }

 private:
  const Walk& walk_;
  std::int32_t wave_ = 0;
};

// The pieces of one cluster of make_walk(), one after the other.
class Pieces {
 public:
  KINTSUGI_HOST_DEVICE constexpr explicit Pieces(const Walk& walk) : walk_(walk) {}

  // `cluster` is the same number in every call.
  KINTSUGI_HOST_DEVICE constexpr bool next(std::int32_t cluster, Piece& piece) {
    const std::int32_t part = cluster / walk_.part_clusters;
    const std::int32_t left = cluster % walk_.part_clusters * walk_.part_turns + turn_;
    const bool has_part = turn_ < walk_.part_turns && part < walk_.parts && left < walk_.left();
    if (has_part && wave_ >= wave_of(part)) {
      piece = {walk_.whole() + left, part};
      ++turn_;
      return true;
    }
    if (wave_ == walk_.waves) return false;
    piece = {wave_ * walk_.clusters + cluster, 0};
    ++wave_;
    return true;
  }

 private:
  // Before which wave parts of that number are added; at most the number of waves.
  KINTSUGI_HOST_DEVICE constexpr std::int32_t wave_of(std::int32_t part) const {
    return walk_.parts == 1 ? walk_.waves : part * walk_.waves / (walk_.parts - 1);
  }

  const Walk& walk_;
  std::int32_t turn_ = 0;  // parts that were given
  std::int32_t wave_ = 0;
};

}  // namespace kintsugi::core::cuda
