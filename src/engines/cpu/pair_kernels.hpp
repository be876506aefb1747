// Kernels for native products of double-double matrices: one family a file, each compiled with its own flags.
// Plain data alone, as in int8_kernels.hpp.
#pragma once

#include <cstdint>

namespace kintsugi::core {

// A tile of C, and how much of k is packed at once: 240 KiB of a thread's stack. An element is packed for 96
// products; tiles of half the edge spent a quarter of the time on it.
inline constexpr std::int64_t pair_rows = 96;
inline constexpr std::int64_t pair_columns = 96;
inline constexpr std::int64_t pair_length = 32;

// Both words of elements (i, p) at a_..[i + p pair_rows], (p, j) at b_..[j + p pair_columns]; of sums (i, j)
// at [i + j pair_rows].
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

  // Time of a product relative to OpenBLAS's in FP32, with the same vectors (docs/results/log).
  double relative_time;

  // sums += a b over `length` inner indices, at least for rows x columns of them.
  void (*add_products)(PairTile& tile, std::int64_t rows, std::int64_t columns, std::int64_t length);
};

extern const PairKernels pairs_generic;
extern const PairKernels pairs_avx2;    // x86-64 alone
extern const PairKernels pairs_avx512;  // x86-64 alone

}  // namespace kintsugi::core
