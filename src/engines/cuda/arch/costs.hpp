// Costs of kernels and calls on a device: times in microseconds, rates per microsecond.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engines/cuda/step_data.hpp"

namespace kintsugi::core::cuda {

struct Family;

// Most structures with multi-term kernels, and most tiles of a kind of kernels, that a family has.
inline constexpr std::size_t max_structures = 4;
inline constexpr std::size_t max_tiles = 4;

// Times of a tile that a cluster computes; of an mma tile on an SM that is full of them, divided by their
// number.
struct TileTimes {
  double block = 0;  // time of each k-block
  double tile = 0;   // time of the tile in addition to its k-blocks
};

// Times of a k-block of a small tile.
struct SmallTileTimes {
  double alone = 0;   // time if the SM has one thread block
  double shared = 0;  // time per thread block if the SM has several
};

// Costs of the multi-term GEMM kernels. Their tiles are chosen by these costs.
struct MultiTermCosts {
  double launch;  // time before the first slices have arrived, and after the last k-block
  // Factors of the time of a k-block whose partial sums are added outside the matrix unit 2 or 4 times. The
  // time of a k-block whose sum is added once is 1. `alone`: for a small tile that has an SM of its own.
  double two_sums_factor;
  double four_sums_factor;
  double four_sums_factor_alone;
  double small_tile;         // time of a small tile in addition to its k-blocks
  double segment_sums;       // time to add the sums of parallel segments, in addition to reading their bytes
  double memory_rate;        // bytes of operands that are read from memory
  double cache_rate;         // bytes that all thread blocks load from L2
  double narrow_cache_rate;  // cache_rate of tiles of 32 columns, whose loads of 16 columns are slower
  // Indexed like Family::multi_term and the tiles, or mma tiles, of its structures, and like its small tiles.
  std::array<std::array<TileTimes, max_tiles>, max_structures> tiles;
  std::array<SmallTileTimes, max_tiles> small_tiles;
};

// Costs of a call's other steps, and of native FP32 products of the shapes that suit cuBLAS best.
struct CallCosts {
  double copy_rate;             // bytes of a copy on the device, read and written bytes together
  double split_launch;          // time to launch the splits of both operands
  double split_launch_alone;    // time to launch the split of one operand
  double split_rate;            // split rate, as a fraction of copy_rate
  double split_launch_long;     // time to launch the splits of both operands with long vectors
  double split_rate_long;       // split rate of long vectors, as a fraction of copy_rate
  double native_launch;         // time of one of the library's kernels that exits early after a cuBLAS kernel
  double native_ends;           // time before the first and after the last multiplication of a kernel
  double native_rate;           // multiplications and additions in FP32
  double native_rate_short;     // native_rate if the shorter side of C is 16 to 128
  double native_read_short;     // bytes read if the shorter side of C is 16 to 128
  double native_read_shortest;  // bytes read if the shorter side of C is 2 to 15
  double selection;             // time to select a candidate, and of everything that is not counted elsewhere
  double prepared_selection;    // `selection` if an operand is prepared
  double result_time;           // time to write C in addition to the tiles' time, relative to a copy
  double throttling;         // time that the power limit adds to long products, as a fraction of their time
  double throttled_product;  // time from which a product is long
};

// Costs of native products of all types, by the library's kernels and by cuBLAS.
struct NativeCallCosts {
  double own_launch;     // time of one of the library's kernels before its first operands have arrived
  double tile_ends;      // time of begin and end of a tile, in inner indices that take as long
  double vendor_launch;  // time of a cuBLAS kernel before its first operands have arrived
};

// Costs of native products of one element type.
struct NativeCosts {
  // Time of one wave per inner index, for each tile of the type's kernels. A wave is as many tiles as the
  // device computes at the same time. The tiles are those of the family's DMMA kernels if it has such kernels
  // for the type, and of its SIMT kernels otherwise.
  std::array<double, max_tiles> tile_index;
  double vendor_rate;     // operations of cuBLAS's kernels
  double unaligned_rate;  // factor of vendor_rate if NativeShape::is_aligned is false
  double vendor_result;   // time of cuBLAS's kernels per element of C that no product hides
  double vendor_update;   // the same in addition if C is read
};

// Costs of products by residues, without the multiplication of slices.
struct ResidueCosts {
  double launches;       // time per call, including the time in which a small product leaves SMs idle
  double operand_slice;  // time of ranges and split per element of A or B and slice
  double result_slice;   // time of recombination per element of C and slice
  double update;         // time per element of C in addition if C is read
};

// Costs of the GEMM kernels for int8 slices with exponents per tile, and of packing operands into such
// slices. Times are those of a cluster's tile of C with 128 columns.
struct WeightedTileCosts {
  double launch;        // time of both kernels in addition to the tiles of C
  double failing_rate;  // thread blocks that look for failing tiles and find none
  double product;       // time of a product of two slices over 128 inner indices
  // Time to convert the sums of one tile along k, for tiles of 32 inner indices and for deeper ones.
  double conversion_32;
  double conversion_128;
  double tile;  // time of a tile of C in addition to its k-blocks
};

struct PackingCosts {
  double launch;  // time to launch the packing of one operand
  double rate;    // bytes that are read and written, as a fraction of copy_rate
};

// Costs of the GEMM kernels that convert FP32 operands (direct_gemm.cpp).
struct DirectCosts {
  double launch = 0;                 // time before the first operands have arrived; 0: no times are known
  std::array<TileTimes, 4> tiles{};  // of direct_tiles, where the SMs are full
  double meeting = 0;                // time in which thread blocks without a cluster add their sums
  double unaligned = 0;              // factor of k-blocks if an operand cannot be loaded 16 bytes at a time
};

struct Costs {
  MultiTermCosts multi_term;
  CallCosts call;
  TileTimes int8_tile;  // of the int8 GEMM kernels; used by int8_microseconds()
  WeightedTileCosts weighted_tiles;
  PackingCosts packing;
  DirectCosts direct;  // zeros for families without such kernels
  NativeCallCosts native_call;
  std::array<NativeCosts, 4> native;  // native and residues are indexed by ElementType
  std::array<ResidueCosts, 4> residues;
};

// Change of a cost on a device of another size. Times shrink in proportion to the clock of the SMs
// (clock_time) or to the memory bandwidth (memory_time). Rates grow in proportion to the clock times the
// number of SMs (compute_rate) or to the memory bandwidth (memory_rate).
enum class CostScaling { none, clock_time, memory_time, compute_rate, memory_rate };

// Name of a type's costs, such as "c64".
const char* name_of(ElementType type);

struct CostField {
  std::string name;  // such as "multi_term.fp16x3.256x192.block"
  double* value;
  CostScaling scaling;
};

// Returns all costs that devices of a family have, in the order of costs.hpp. The fields point into `costs`.
std::vector<CostField> cost_fields(Costs& costs, const Family& family);

}  // namespace kintsugi::core::cuda
