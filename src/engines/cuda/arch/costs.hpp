// What kernels and calls cost on an architecture: times in microseconds, rates per microsecond.
#pragma once

#include <array>

namespace kintsugi::core::cuda {

// Costs of the multi-term GEMM kernels beside those of their tiles, by which a tile is chosen.
struct MultiTermCosts {
  double launch;  // of a kernel, until its first slices are there and from its last elements on
  // A k-block of 64 that leaves the matrix unit as 2 or 4 sums takes so many times as long as one that leaves
  // as one sum. `alone`: a small tile with an SM of its own.
  double two_sums_factor;
  double four_sums_factor;
  double four_sums_factor_alone;
  double small_tile;  // time of a small tile besides its k-blocks
  double
      segment_sums;    // of adding sums of segments that have thread blocks of their own, besides their bytes
  double memory_rate;  // bytes of operands
  double cache_rate;   // bytes that all thread blocks load; boxes of sixteen columns are slow
  double narrow_cache_rate;  // of tiles of 32 columns
};

// Costs of the other steps of a call, and of native products at best.
struct CallCosts {
  double copy_rate;             // bytes, read and written
  double split_launch;          // of both operands' splits
  double split_launch_alone;    // of one operand's
  double split_rate;            // as a part of copy_rate
  double long_vector;           // elements from which vectors may be divided, and read twice
  double split_launch_long;     // of both operands' splits then
  double split_rate_long;       // and their rate
  double native_launch;         // of a kernel that has nothing to do, after one that is not ours
  double native_ends;           // time until the first operands are there and from the last elements on
  double native_rate;           // multiplications and additions in FP32
  double native_rate_short;     // where the shorter side of C is 16 to 128
  double native_read_short;     // bytes, beside such a side
  double native_read_shortest;  // bytes, beside a side of 2 to 15
  double selection;             // of a candidate, with all that is not counted
  double throttling;            // the power limit adds this part to long products
  double throttled_product;     // time from which a product is long
};

// Costs of native products of one type of elements.
struct NativeCosts {
  double inner_index;  // of the smallest tiles of our own kernels, as many as the device has at once
  double vendor_rate;  // operations of the vendor's kernels
};

// Costs of products by residues beside those of their slices.
struct ResidueCosts {
  double launches;       // of a call, with what small products do not fill
  double element_slice;  // ranges, split and recombination of an element's slice
};

struct Costs {
  MultiTermCosts multi_term;
  CallCosts call;
  std::array<NativeCosts, 4> native;  // by the elements' type, as are these
  std::array<ResidueCosts, 4> residues;
};

}  // namespace kintsugi::core::cuda
