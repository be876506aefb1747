// Ozaki scheme I on a device: Algorithms 1 to 3 of dgemm-tc as steps. All pointers are the device's. What the
// plan's slices do not hold is marked, not failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/slice_count.hpp"
#include "engines/device.hpp"

namespace kintsugi::core {

// Exponents of slices, and how many there are.
struct DeviceSliceExponents {
  std::int32_t* exponents = nullptr;  // slice s, vector v: element s * stride + v
  std::int64_t stride = 0;
  // Slices until nothing was left of a vector; one more than there are: something is.
  std::int32_t* lengths = nullptr;

  DeviceSliceExponents from(std::int64_t first) const { return {exponents + first, stride, lengths + first}; }
};

// Slice counts of all blocks of C, which have `rows` rows and `vectors` of B's vectors; block (i, j) is
// element i + j blocks_m.
struct DeviceBlockSliceCounts {
  SliceCounts* slice_counts =
      nullptr;  // null: the number of slices was given, or is whatever vectors ask for
  std::int64_t rows = 1;
  std::int64_t vectors = 1;
  std::int64_t blocks_m = 0;
  std::int64_t blocks_n = 0;
};

// Algorithm 1 for vectors first ... first + slices.vectors - 1, padding included; their ranges are known.
struct DeviceSuccessiveSplit {
  DeviceSide side;
  std::int64_t first = 0;
  Slices slices;
  int bits = 0;
  DeviceSliceExponents exponents;
  // Where a vector has more slices, or exponents further apart than `most_depth`, *unreachable becomes 1: of
  // all vectors, or of those in blocks whose slice counts are all of B's slices; else of none.
  enum class Complete : std::uint8_t { need_not_be, all, where_needed } complete = Complete::need_not_be;
  std::int32_t most_depth = 0;  // 0: any
  DeviceBlockSliceCounts slice_counts;
  std::int32_t* unreachable = nullptr;
};

// Algorithm 3: what rows first ... of A, which are split, ask for. *unreachable becomes 1 where there are not
// enough.
struct DeviceRowSliceCounts {
  DeviceSide a;
  std::int64_t first = 0;
  Slices slices;
  DeviceSliceExponents exponents;
  const double* weights = nullptr;  // |B| e of block j: element j k + p
  int bits = 0;                     // of the accuracy: u = 2^-bits
  DeviceBlockSliceCounts slice_counts;
  std::int32_t* unreachable = nullptr;
};

// The sums of a tile of C: its elements' rows and vectors of B lie in the sums as `products` of multiply()
// do.
struct DeviceProductSums {
  DeviceTile tile;
  DeviceSliceExponents rows;  // of the tile's first row and vector
  DeviceSliceExponents vectors;
  int slices = 0;  // of each operand
  bool fast = false;
  bool exact = false;  // integers of `limbs` words, one rounding; else FP64, in the order of the products
  std::byte* sums = nullptr;
  std::int64_t stride = 0;  // sums of a column
  std::int64_t columns = 0;
  DeviceBlockSliceCounts slice_counts;

  static constexpr int limbs = 6;
  // Of the exponents of one vector's slices: two such depths, 62 bits of a product, 10 of their number and a
  // sign fit.
  static constexpr int most_depth = (64 * limbs - 74) / 2;

  static constexpr std::size_t bytes_of_sum(bool exact) {
    return exact ? limbs * sizeof(std::uint64_t) : sizeof(double);
  }
};

// At the end of a batch item: where it was unreachable, its selection becomes DeviceSelection::none. Adds to
// the report.
struct DeviceOzaki1Item {
  DeviceSelection* selection = nullptr;
  const std::int32_t* unreachable = nullptr;
  DeviceReport* report = nullptr;
  DeviceBlockSliceCounts slice_counts;
  int slices = 0;
  bool fast = false;
};

class DeviceOzaki1 {
 public:
  virtual ~DeviceOzaki1() = default;

  // Slices of one or two operands.
  virtual void split_successively(const Queue& queue, std::span<const DeviceSuccessiveSplit> splits,
                                  const DeviceCondition& condition) const = 0;
  // |B| e of every block of C's columns.
  virtual void weigh_inner_indices(const Queue& queue, const DeviceSide& b,
                                   const DeviceBlockSliceCounts& slice_counts, double* weights,
                                   const DeviceCondition& condition) const = 0;
  // Slice counts of A's rows.
  virtual void find_slice_counts(const Queue& queue, const DeviceRowSliceCounts& rows,
                                 const DeviceCondition& condition) const = 0;
  // Products of slices first_a ... of A by slice `slice_b` of B, in the first groups of `products`, as
  // multiply() has them; only where the slice counts ask for them.
  virtual void multiply_counted(const Queue& queue, const DeviceProductSums& sums, const Slices& a,
                                const Slices& b, const Accumulators& products, int first_a,
                                int slice_b) const = 0;
  // Adds such products to the sums.
  virtual void add_products(const Queue& queue, const DeviceProductSums& sums, const Accumulators& products,
                            int first_a, int b) const = 0;
  // C of the sums.
  virtual void finish_sums(const Queue& queue, const DeviceProductSums& sums) const = 0;
  virtual void finish_item(const Queue& queue, const DeviceOzaki1Item& item) const = 0;
};

}  // namespace kintsugi::core
