// Kernels for native products of double-double matrices. Each family is in a file of its own, compiled with
// its own flags. This header holds plain data only, for the reason in int8_kernels.hpp.
#pragma once

#include <cstdint>

namespace kintsugi::core {

// Rows and columns of a tile of C, and inner indices packed at once. A PairTile takes 240 KiB of a thread's
// stack. A packed element serves 96 products; with tiles of half the edge, packing took a quarter of the
// time.
inline constexpr std::int64_t pair_rows = 96;
inline constexpr std::int64_t pair_columns = 96;
inline constexpr std::int64_t pair_length = 32;

// Packed operands and sums of a tile, in arrays of high words and arrays of low words. Element (i, p) of a is
// at [i + p pair_rows], element (p, j) of b at [j + p pair_columns], sum (i, j) at [i + j pair_rows].
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

  // Time of a product divided by the time of OpenBLAS's FP32 product with the same instruction set
  // (lab/results/log).
  double relative_time;

  // Adds a b over `length` inner indices to the sums. May leave out sums outside the first `rows` rows and
  // `columns` columns.
  void (*add_products)(PairTile& tile, std::int64_t rows, std::int64_t columns, std::int64_t length);
};

extern const PairKernels pairs_generic;
extern const PairKernels pairs_avx2;    // x86-64 only
extern const PairKernels pairs_avx512;  // x86-64 only

}  // namespace kintsugi::core
