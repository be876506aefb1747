// Ozaki scheme I on a device: Algorithms 1 to 3 of dgemm-tc as steps. All pointers are device pointers. If
// operands need more slices than planned, the call does not fail, but the item is marked as unreachable.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arith/successive.hpp"
#include "engines/cuda/step_data.hpp"

namespace kintsugi::core {

// Exponents of a side's slices, and the number of slices of each vector.
struct DeviceSliceExponents {
  std::int32_t* values = nullptr;  // element s * stride + v is for slice s of vector v
  std::int64_t stride = 0;
  // Number of slices after which a vector's residuals are 0. If they are never 0, one more than the number of
  // computed slices.
  std::int32_t* lengths = nullptr;

  DeviceSliceExponents from(std::int64_t first) const { return {values + first, stride, lengths + first}; }
};

// Slice counts of all blocks of C. A block has `rows` rows, and columns for `vectors` vectors of B. Element
// i + j blocks_m has the counts of block (i, j).
struct DeviceBlockSliceCounts {
  SliceCounts* counts = nullptr;  // nullptr: the number of slices was given, or each vector has its own
  std::int64_t rows = 1;
  std::int64_t vectors = 1;
  std::int64_t blocks_m = 0;
  std::int64_t blocks_n = 0;
  // Without counts: largest numbers of slices of the vectors of each block of C's rows, then of its columns.
  // They must be 0 before the splits.
  std::int32_t* lengths = nullptr;
};

// Algorithm 1 for vectors first ... first + slices.vectors - 1, padding included; their ranges are known.
struct DeviceSuccessiveSplit {
  DeviceSide side;
  std::int64_t first = 0;
  Slices slices;
  int bits = 0;
  bool by_sigma = false;  // rounds as SplitRule::sigma_grid does
  DeviceSliceExponents exponents;
  // Vectors whose slices must add up to all bits of their elements. *unreachable becomes 1 if such a vector
  // needs more slices, or if the exponents of its slices are further apart than `max_depth`.
  enum class Complete : std::uint8_t {
    unchecked,    // no vector
    all_vectors,  // every vector
    where_used    // vectors of blocks of C whose slice counts require all of B's slices
  } complete = Complete::unchecked;
  std::int32_t max_depth = 0;  // 0: no limit
  DeviceBlockSliceCounts slice_counts;
  std::int32_t* unreachable = nullptr;
};

// Algorithm 3: finds the slice counts that rows of A from `first` on need. Their slices must have been
// computed. *unreachable becomes 1 if a row needs more slices than there are.
struct DeviceRowSliceCounts {
  DeviceSide a;
  std::int64_t first = 0;
  Slices slices;
  DeviceSliceExponents exponents;
  const double* weights = nullptr;  // |B| e; element j k + p: inner index p, block j of columns of C
  int bits = 0;                     // bits of the accuracy: u = 2^-bits
  DeviceBlockSliceCounts slice_counts;
  std::int32_t* unreachable = nullptr;
};

// Sums of a tile of C, laid out as the sums of multiply(): one column per vector of B.
struct DeviceProductSums {
  DeviceTile tile;
  DeviceSliceExponents row_exponents;     // from the tile's first row on
  DeviceSliceExponents vector_exponents;  // from the tile's first vector on
  int slices = 0;                         // slices of each operand
  bool fast = false;                      // as in SliceDepth
  int bits = 0;                           // of a slice
  std::int64_t k_block = 0;  // inner indices whose products the matrix unit sums without an error
  bool exact = false;  // true: integers of `limbs` words, rounded once; false: FP64, in the order of products
  std::byte* data = nullptr;
  std::int64_t stride = 0;  // sums in a column
  std::int64_t columns = 0;
  DeviceBlockSliceCounts slice_counts;

  static constexpr int limbs = 6;
  // Largest difference between exponents of one vector's slices. `limbs` words hold two such differences, 62
  // bits of a product, 10 bits for the number of products, and a sign.
  static constexpr int max_depth = (64 * limbs - 74) / 2;

  static constexpr std::size_t bytes_of_sum(bool exact) {
    return exact ? limbs * sizeof(std::uint64_t) : sizeof(double);
  }
};

// Last step of a batch item. If *unreachable is 1, the item's selection becomes DeviceSelection::none. The
// report counts the item's slices.
struct DeviceOzaki1Item {
  DeviceSelection* selection = nullptr;
  const std::int32_t* unreachable = nullptr;
  DeviceReport* report = nullptr;
  DeviceBlockSliceCounts slice_counts;
  int slices = 0;
  bool fast = false;
};

}  // namespace kintsugi::core
