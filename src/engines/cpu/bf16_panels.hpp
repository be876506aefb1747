// Products of bf16 slices in panels, by a matrix unit of 16 x 16 sums that multiplies 16 pairs of inner
// indices at once (TDPBF16PS). Plain data only, for the reason that kernels.hpp gives.
//
// Left and right operand are as in byte_panels.hpp: a row of a tile of sums is contiguous in C if the right
// operand's vectors are neighbours there.
//
// A panel has 32 vectors over one run of inner indices, cut into steps of 32; zeros fill the last one. A step
// of a slice has two tiles of 16 vectors, 1024 bytes each:
//   left    row v has the 32 numbers of vector v
//   right   row q has the numbers 2 q and 2 q + 1 of each of 16 vectors
// Sums of a pair of panels are four tiles of 16 x 16 FP32 numbers: left half 0 or 1, right half 0 or 1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

struct Bf16Panel {
  static constexpr std::int64_t vectors = 32;
  static constexpr std::int64_t half = 16;
  static constexpr std::int64_t step = 32;
  static constexpr std::int64_t tile_bytes = 1024;
  static constexpr std::int64_t step_bytes = 2 * tile_bytes;
  static constexpr std::int64_t sums = vectors * vectors;
  static constexpr int max_slices = 4;  // of Bf16Split
};

// Half of a panel: vectors whose elements are scaled and split into residuals rounded to nearest.
struct Bf16Split {
  const float* elements;  // of the first vector at the first inner index
  std::int64_t vector_stride;
  std::int64_t inner_stride;
  std::int64_t vectors;    // at most Bf16Panel::half
  std::int64_t length;     // inner indices
  const float* exponents;  // Bf16Panel::half numbers; elements of vector v are multiplied by 2^exponents[v]
  float residual_factor;   // of the residual before the next slice
  int slices;
  bool is_left;
  bool streams;               // panels are written past the caches
  std::byte* tile;            // of the first step of slice 0; those of later steps are step_bytes apart
  std::int64_t slice_stride;  // bytes from slice to slice
};

// A product of slices. If `rescales`, the accumulator is multiplied by Bf16Products::rescale before it.
struct Bf16Term {
  int left;
  int right;
  bool rescales;
};

// Products of panels over one run of inner indices: an accumulator takes the terms in their order, each over
// the whole run.
struct Bf16Products {
  const std::byte* left;  // first left panel of slice 0
  const std::byte* right;
  const std::byte* next_left;  // first panels of the products that follow, to be prefetched
  const std::byte* next_right;
  std::int64_t panel_stride;  // bytes from panel to panel
  std::int64_t slice_stride;  // bytes from slice to slice
  std::int64_t left_panels;
  std::int64_t right_panels;
  int steps;
  const Bf16Term* terms;
  int term_count;
  float rescale;
  // Accumulators begin with the sums and replace them (continues); or they begin with zero, and replace the
  // sums (is_first) or are added to them in FP32. The sums of pair (i, j) are at (i * right_panels + j) *
  // Bf16Panel::sums.
  bool continues;
  bool is_first;
  float* sums;
};

// Elements of C of one pair of panels: alpha (weight sum) row_units[i] column_units[j] + beta C, in double,
// rounded once.
struct Bf16Results {
  const float* sums;
  double weight;
  const double* row_units;
  const double* column_units;
  double alpha;
  double beta;                // 0: C is not read
  float* c;                   // element (0, 0) of the pair
  std::int64_t row_stride;    // columns are contiguous
  const std::uint32_t* open;  // bit j of open[i]: element (i, j) exists, and its row and column are finite
};

struct Bf16Kernels {
  const char* name;
  void (*split)(const Bf16Split& task);
  void (*multiply)(const Bf16Products& task);
  void (*recombine)(const Bf16Results& task);
};

extern const Bf16Kernels bf16_amx;  // x86-64 Linux only

}  // namespace kintsugi::core
