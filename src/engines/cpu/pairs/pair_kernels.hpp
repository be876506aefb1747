// Kernels for native products of double-double matrices: one family per file, each compiled with its own
// flags. Plain data only, for the reason in int8_kernels.hpp.
#pragma once

#include <cstdint>

namespace kintsugi::core {

// Rows and columns of a tile of C, and inner indices packed at once; a PairTile takes 240 KiB of a thread's
// stack. A packed element serves 96 products; tiles of half the edge spent a quarter of the time on packing.
inline constexpr std::int64_t pair_rows = 96;
inline constexpr std::int64_t pair_columns = 96;
inline constexpr std::int64_t pair_length = 32;

// Packed operands and sums of a tile. Both words of element (i, p) of a are at a_..[i + p pair_rows], of (p,
// j) of b at b_..[j + p pair_columns], of sum (i, j) at sum_..[i + j pair_rows].
struct PairTile {
  alignas(64) double a_hi[pair_rows * pair_length];
  alignas(64) double a_lo[pair_rows * pair_length];
  alignas(64) double b_hi[pair_columns * pair_length];
  alignas(64) double b_lo[pair_columns * pair_length];
  alignas(64) double sum_hi[pair_rows * pair_columns];
  alignas(64) double sum_lo[pair_rows * pair_columns];
};

struct PairKernels {
  const char* name;

  // Time of a product relative to one of OpenBLAS in FP32 with the same vectors (docs/results/log).
  double relative_time;

  // Adds a b over `length` inner indices to the sums, at least for rows x columns of them.
  void (*add_products)(PairTile& tile, std::int64_t rows, std::int64_t columns, std::int64_t length);
};

extern const PairKernels pairs_generic;
extern const PairKernels pairs_avx2;    // x86-64 only
extern const PairKernels pairs_avx512;  // x86-64 only

}  // namespace kintsugi::core
