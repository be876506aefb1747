// Tiles of FP64 products on tensor cores (DMMA).
#pragma once

#include <cstdint>

#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

inline constexpr int dmma_line_bytes = 128;    // bytes of an operand's line in shared memory
inline constexpr int dmma_producer_warps = 4;  // warps that copy operands; the other warps multiply

// Compile-time parameters of a kernel. Its thread block computes tiles of rows x columns of C. Each of its
// consumer warps computes warp_rows x warp_columns of a tile. A stage has `k_tiles` lines of each vector.
struct DmmaConfig {
  int rows;
  int columns;
  int warp_rows;
  int warp_columns;
  int stages;
  int k_tiles;
  int consumer_registers;  // registers per consumer thread; 0: as many as producer threads have

  constexpr int consumer_warps() const { return rows / warp_rows * (columns / warp_columns); }
  constexpr int threads() const { return (consumer_warps() + dmma_producer_warps) * 32; }
  // Registers per producer thread: those that eight or four consumer warps leave of the thread block's
  // registers. Twelve warps have 168 per thread, eight warps have 128 per thread. With a larger total
  // setmaxnreg would wait forever.
  constexpr int producer_registers() const { return consumer_warps() == 8 ? 40 : 56; }
  constexpr std::int64_t shared_bytes() const {
    constexpr std::int64_t barrier_bytes = 16;
    return std::int64_t{stages} * ((rows + columns) * dmma_line_bytes * k_tiles + barrier_bytes);
  }
};

// Tile of a kernel, and the number of the kernel's thread blocks that an SM holds.
struct DmmaTile {
  DmmaConfig config;
  int blocks_per_sm;

  constexpr int rows() const { return config.rows; }
  constexpr int columns() const { return config.columns; }
};

// Parameters of the kernels. The matrix unit's rows are vectors of A. If `swapped`, they are vectors of B,
// and the kernel computes the transpose of C.
struct DmmaTask {
  DeviceTile tile;
  bool swapped = false;
  std::int32_t row_tiles = 0;  // tiles along the matrix unit's rows
  std::int32_t column_tiles = 0;
};

}  // namespace kintsugi::core::cuda
