// Native products by SIMT kernels: tiles, and expected times.
#pragma once

#include <array>
#include <cstdint>

#include "base/embedding.hpp"
#include "base/view.hpp"

namespace kintsugi::core {
struct DeviceTile;
struct NativeShape;
}  // namespace kintsugi::core

namespace kintsugi::core::cuda {

struct Costs;

inline constexpr int simt_side = 16;  // threads along a tile's rows, and along its columns
inline constexpr int simt_threads = simt_side * simt_side;

// Inner indices of a step. In a step every thread copies 32 bytes of each operand.
template <class T>
constexpr int simt_depth(int tile) {
  return 32 * simt_threads / (tile * static_cast<int>(sizeof(T)));
}

// Tile of C. Wide tiles use each element that they read for more multiplications. Narrow tiles are for a C
// that has few wide ones.
struct SimtTile {
  int side;           // number of rows, and of columns
  int blocks_per_sm;  // thread blocks that an SM holds
  float time;         // time of as many tiles as a device holds at once; 1 for the narrowest tiles

  constexpr int rows() const { return side; }
  constexpr int columns() const { return side; }
};

// Relative times, measured for real elements (2026-11-24). Times of complex elements are those of FP64 tiles
// of twice the side. FP64 elements have one tile: they are multiplied here only where no matrix unit does it.
inline constexpr std::array simt_tiles_f32{SimtTile{.side = 128, .blocks_per_sm = 2, .time = 5.4F},
                                           SimtTile{.side = 64, .blocks_per_sm = 2, .time = 1.85F},
                                           SimtTile{.side = 32, .blocks_per_sm = 2, .time = 1}};
inline constexpr std::array simt_tiles_f64{SimtTile{.side = 64, .blocks_per_sm = 2, .time = 1}};
inline constexpr std::array simt_tiles_c32{SimtTile{.side = 64, .blocks_per_sm = 2, .time = 2.7F},
                                           SimtTile{.side = 32, .blocks_per_sm = 2, .time = 1}};
inline constexpr std::array simt_tiles_c64{SimtTile{.side = 32, .blocks_per_sm = 2, .time = 1}};

// Native FP32 products of small matrices: the thread blocks of a cluster divide the inner indices among them.

inline constexpr std::size_t simt_split_tile = 1;  // index in simt_tiles_f32 of the tile
inline constexpr int simt_split_blocks = 7;        // most thread blocks per cluster; 8 left SMs idle

// Number of inner indices of each of `blocks` thread blocks, except the last one. It is a multiple of whole
// steps, since single inner indices take several times as long.
constexpr std::int64_t split_length(std::int64_t k, std::int64_t blocks) {
  return round_up(divide_up(k, blocks),
                  std::int64_t{simt_depth<float>(simt_tiles_f32[simt_split_tile].side)});
}

// Thread blocks that share a tile of C: one, or those of a cluster.
std::int64_t blocks_per_tile(const DeviceTile& tile);

// Expected time of a product without its launch and its writes of C.
double simt_time(const NativeShape& shape, const Costs& costs);

}  // namespace kintsugi::core::cuda
