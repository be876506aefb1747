// Kernels for products of floating slices that are widened to FP32. Each family is in a file of its own,
// compiled with its own flags. This header holds plain data only, for the reason in int8_kernels.hpp.
//
// An element's accumulator takes one fused multiply-add after the other, in the order of the schedule
// (Accumulator::fp32). Lanes of a SIMD register belong to different elements. So all families, with tiles of
// any size, give the bits of the reference engine.
#pragma once

#include <cstdint>

namespace kintsugi::core {

// Number of interleaved vectors in a panel: Slices::panel_vectors.
inline constexpr std::int64_t float_panel = 16;

// Rows and columns of a tile of C. The L2 cache holds a tile's sums (48 KiB) and 64 inner indices of two
// slices of each operand (80 KiB). Tiles are small, so that small products have tiles for every thread.
inline constexpr std::int64_t float_rows = 96;
inline constexpr std::int64_t float_columns = 64;

// One product of slices. `a` and `b` are the distances, in elements, from slice 0 of each operand to the
// term's slice.
struct FloatTerm {
  std::int64_t a;
  std::int64_t b;
  bool rescales;  // the accumulator is multiplied by FloatBlock::rescale before the term
};

// The terms of one accumulator group over one k-block, for a tile.
struct FloatBlock {
  const float* a;  // panels of the tile's rows at the block's first inner index, in the first slice
  const float* b;
  std::int64_t panel_stride;  // elements from one panel to the next
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t length;
  std::int64_t step;  // inner indices after which the terms alternate
  const FloatTerm* terms;
  std::int64_t term_count;
  float rescale;
  double weight;  // a power of two
  // True if every product of elements is zero or a normal number of fp32. It is then exact in fp32, and a
  // kernel without fused multiply-adds may multiply and add separately.
  bool normal_products;
};

struct FloatKernels {
  const char* name;

  // Products per unit of time relative to OpenBLAS's FP32 product. The values are rates in lab/results/log,
  // rounded down.
  double relative_rate;
  double relative_rate_fused;  // if FloatBlock::normal_products is false

  // Adds weight * accumulator to the tile's sums. Column j of rows i ... i + 15, i a multiple of 16, is
  // contiguous at sums[i * float_columns + j * 16].
  void (*add_block)(const FloatBlock& block, double* sums);
};

extern const FloatKernels floats_generic;
extern const FloatKernels floats_avx2;    // x86-64 only
extern const FloatKernels floats_avx512;  // x86-64 only

}  // namespace kintsugi::core
