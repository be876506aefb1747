// Families of kernels, one table of functions for each: products of int8 slices, 52-bit words, floating
// slices, double-double numbers, and sums in two doubles. Families are in files that are compiled with flags
// of their own. This header holds plain data only. If it had an inline function, every family would compile a
// copy with its own flags, and the linker would keep one of the copies for all files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recombine/sum_kernels.hpp"

namespace kintsugi::core {

// ---------------------------------------------------------------- int8 slices

// Vectors of a and of b, padded to Slices::vector_multiple, and the range of k over which products are added.
struct Int8Block {
  const std::int8_t* a;
  const std::int8_t* b;
  std::int64_t stride;  // elements from one vector to the next
  std::int64_t rows;    // vectors of a whose sums are needed, at most the kernels' tile
  std::int64_t columns;
  std::int64_t length;  // elements of each vector; the kernels read no others
};

struct PanelKernels;  // byte_panels.hpp

struct Int8Kernels {
  const char* name;

  // Products per unit of time relative to OpenBLAS's FP32 product. Rates in lab/results/log, rounded down.
  double relative_rate;

  // Edge of the largest tile of sums, a power of two times Slices::vector_multiple.
  std::int64_t tile;

  // Bytes of add_product()'s scratch memory `packed`.
  std::size_t packed_bytes;

  // Adds a * b^T modulo 2^32 to `sums`, a column-major array of tile x tile elements. May leave out elements
  // outside the first `rows` rows and `columns` columns.
  void (*add_product)(const Int8Block& block, std::byte* packed, std::uint32_t* sums);

  const PanelKernels* panels;  // of fused products; nullptr: none
};

extern const Int8Kernels int8_generic;
extern const Int8Kernels int8_avx512;  // x86-64 only
extern const Int8Kernels int8_amx;     // x86-64 Linux only

// ---------------------------------------------------------------- 52-bit words

inline constexpr std::int64_t int52_tile = 256;

__extension__ using Int52Sum = unsigned __int128;

// Vectors of a and of b, padded to int52_tile, and the range of k over which products are added.
struct Int52Block {
  const std::int64_t* a;
  const std::int64_t* b;
  std::int64_t stride;  // elements from one vector to the next
  std::int64_t rows;    // vectors of a whose sums are needed, at most int52_tile
  std::int64_t columns;
  std::int64_t length;  // elements of each vector; the kernels read no others
};

// Sums of a tile. The sum of row i and column j is at i + j * stride.
struct Int52Sums {
  Int52Sum* data;
  std::int64_t stride;
  bool adds;  // true: the product is added to the sums; false: it replaces them
};

struct Int52Kernels {
  const char* name;

  // Products per unit of time relative to OpenBLAS's FP32 product. Rates in lab/results/log, rounded down.
  double relative_rate;

  // Bytes of add_product()'s scratch memory `packed`.
  std::size_t packed_bytes;

  // Computes sums = a * b^T, or adds a * b^T to the sums, modulo 2^128, for rows x columns sums; length > 0.
  void (*add_product)(const Int52Block& block, std::byte* packed, const Int52Sums& sums);
};

extern const Int52Kernels int52_generic;
extern const Int52Kernels int52_avx512;  // x86-64 only

// ---------------------------------------------------------------- floating slices
//
// Slices are widened to FP32. An element's accumulator takes one fused multiply-add after the other, in the
// order of the schedule (Accumulator::fp32). Lanes of a SIMD register belong to different elements. So all
// families, with tiles of any size, give the bits of the reference engine.

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

  // Products per unit of time relative to OpenBLAS's FP32 product. Rates in lab/results/log, rounded down.
  double relative_rate;
  double relative_rate_fused;  // if FloatBlock::normal_products is false

  // Adds weight * accumulator to the tile's sums. Column j of rows i ... i + 15, i a multiple of 16, is
  // contiguous at sums[i * float_columns + j * 16].
  void (*add_block)(const FloatBlock& block, double* sums);
};

extern const FloatKernels floats_generic;
extern const FloatKernels floats_avx2;    // x86-64 only
extern const FloatKernels floats_avx512;  // x86-64 only

// ---------------------------------------------------------------- native double-double products

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

// ---------------------------------------------------------------- sums in two doubles

extern const SumKernels sums_generic;  // slow unless the compiler's target has fused multiply-adds
extern const SumKernels sums_avx2;     // x86-64 only
extern const SumKernels sums_avx512;   // x86-64 only

}  // namespace kintsugi::core
