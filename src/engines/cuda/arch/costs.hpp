// Costs of kernels and calls on an architecture: times in microseconds, rates per microsecond.
#pragma once

#include <array>

namespace kintsugi::core::cuda {

// Times of a cluster's tile: of a k-block, and of the tile besides its k-blocks.
struct TileTimes {
  double block = 0;
  double tile = 0;
};

// Times of a k-block of a small tile: if an SM has one thread block, and per thread block if it has more.
struct SmallTileTimes {
  double alone = 0;
  double shared = 0;
};

// Costs of the multi-term GEMM kernels, by which their tiles are chosen.
struct MultiTermCosts {
  double launch;  // time until the first slices have arrived and after the last elements
  // Time of a k-block of 64 whose partial sums are added outside the matrix unit 2 or 4 times, relative to
  // one whose sum is added once. `alone`: for a small tile that has an SM of its own.
  double two_sums_factor;
  double four_sums_factor;
  double four_sums_factor_alone;
  double small_tile;         // time of a small tile besides its k-blocks
  double segment_sums;       // time to add sums of segments with own thread blocks, besides bytes
  double memory_rate;        // bytes of operands
  double cache_rate;         // bytes that all thread blocks load; boxes of sixteen columns are slow
  double narrow_cache_rate;  // cache_rate for tiles of 32 columns
  // Indexed like the tile tables of the same names (gemm/multi_term/multi_term_structures.hpp).
  std::array<TileTimes, 3> joined_tiles;
  std::array<TileTimes, 3> rescaled_tiles;
  std::array<TileTimes, 3> six_term_tiles;  // the third is not used
  std::array<SmallTileTimes, 3> small_tiles;
};

// Costs of the other steps of a call, and of native products at their best.
struct CallCosts {
  double copy_rate;             // bytes, read and written
  double split_launch;          // time to launch the splits of both operands
  double split_launch_alone;    // time to launch the split of one operand
  double split_rate;            // split rate, as a fraction of copy_rate
  double split_launch_long;     // time to launch the splits of both operands with long vectors
  double split_rate_long;       // split rate of long vectors, as a fraction of copy_rate
  double native_launch;         // time of an idle kernel of ours after a kernel of the vendor's
  double native_ends;           // time before the first and after the last multiplication of a kernel
  double native_rate;           // multiplications and additions in FP32
  double native_rate_short;     // native_rate where the shorter side of C is 16 to 128
  double native_read_short;     // bytes read where the shorter side of C is 16 to 128
  double native_read_shortest;  // bytes read where the shorter side of C is 2 to 15
  double selection;             // time to select a candidate, with all that is not counted elsewhere
  double prepared_selection;    // selection beside a prepared operand
  double result_time;        // time in which an emulation writes C beyond its tiles' time, relative to a copy
  double throttling;         // fraction of their time that the power limit adds to long products
  double throttled_product;  // time from which a product is long
};

// Costs of native products of any type, by our kernels and by the vendor library's.
struct NativeCallCosts {
  double own_launch;            // time of a kernel of ours until its first operands have arrived
  double tile_ends;             // begin and end of a tile, as inner indices
  double vendor_launch;         // time of a vendor library's kernel likewise
  double test_launch;           // time to launch the test of the vendor's sums
  double test_read_time;        // time in which that test reads C, relative to a copy of as many bytes
  double test_operands_launch;  // time to launch a look at the operands, and a test that it makes superfluous
};

// Costs of native products of one element type.
struct NativeCosts {
  // Time per inner index of as many tiles of ours as the device holds at once, for each of the type's tiles
  // (gemm/dmma/dmma_tiles.hpp on Hopper for FP64 and complex FP64, else gemm/simt/simt_tiles.hpp).
  std::array<double, 4> tile_index;
  double vendor_rate;     // operations of the vendor library's kernels
  double unaligned_rate;  // vendor_rate where NativeShape::is_aligned is false, as a fraction of it
};

// Costs of products by residues besides those of multiplying their slices.
struct ResidueCosts {
  double launches;       // time per call, including what small products leave idle
  double element_slice;  // time of ranges, split and recombination per element and slice
};

struct Costs {
  MultiTermCosts multi_term;
  CallCosts call;
  std::array<TileTimes, 2> int8_tiles;  // indexed like int8_tiles (gemm/int8/int8_tiles.hpp)
  NativeCallCosts native_call;
  std::array<NativeCosts, 4> native;  // native and residues are indexed by ElementType
  std::array<ResidueCosts, 4> residues;
};

}  // namespace kintsugi::core::cuda
