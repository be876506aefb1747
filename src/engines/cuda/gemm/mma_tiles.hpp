// Tiles and operands of kernels whose warps multiply by mma.sync. The header serves kernels that are compiled
// at run time, too (term_sums.cuh), so it includes nothing that they do not have.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core::cuda {

inline constexpr int term_block = 64;  // inner indices of a k-block; a pipeline stage holds one

// Tile of C of a thread block, and the part of it that a warp computes.
struct MmaTile {
  int rows;
  int columns;
  int warp_rows;
  int warp_columns;
  // Rate of an SM that is full of such thread blocks, relative to the other tiles of the family.
  double rate;

  constexpr int threads() const { return rows / warp_rows * (columns / warp_columns) * 32; }
  // Bytes of a k-block of one slice of A and one of B, which a pipeline stage holds.
  constexpr int stage_bytes() const { return (rows + columns) * term_block * 2; }
  // True for a tile that also multiplies k-blocks of four sub-blocks, which products with a small C have.
  constexpr bool is_small() const { return rows * columns < 128 * 64; }
  // Thread blocks that the registers of an SM suffice for.
  constexpr int blocks_of_sm() const { return threads() <= 128 ? 2 : 1; }
  constexpr int sums() const { return rows * columns; }
};

// Slices of one operand of all batch items.
struct MmaOperand {
  const std::byte* data = nullptr;  // slice 0 of the first item
  std::int64_t vector_bytes = 0;    // from a vector to the next
  std::int64_t slice_bytes = 0;
  std::int64_t item_bytes = 0;  // 0: all items have the same slices
};

}  // namespace kintsugi::core::cuda
