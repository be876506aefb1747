// Ozaki scheme I on a device: Algorithms 1 to 3 of dgemm-tc as steps. All pointers are device pointers.
// Operands that need more slices than planned are marked; the call does not fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arith/slice_count.hpp"
#include "engines/device.hpp"

namespace kintsugi::core {

// Exponents of a side's slices, and the number of slices of each vector.
struct DeviceSliceExponents {
  std::int32_t* exponents = nullptr;  // slice s, vector v: element s * stride + v
  std::int64_t stride = 0;
  // Number of slices after which a vector's residuals are 0; one more than the computed slices if they are
  // not.
  std::int32_t* lengths = nullptr;

  DeviceSliceExponents from(std::int64_t first) const { return {exponents + first, stride, lengths + first}; }
};

// Slice counts of all blocks of C, each of `rows` rows and `vectors` vectors of B; the counts of block (i, j)
// are element i + j blocks_m.
struct DeviceBlockSliceCounts {
  SliceCounts* counts = nullptr;  // nullptr: the number of slices was given, or is as many as vectors need
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
  // Vectors whose slices must add up to all of their elements' bits. *unreachable becomes 1 if such a vector
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

// Algorithm 3: slice counts that the rows of A from `first` on need; their slices have been computed.
// *unreachable becomes 1 if a row needs more slices than there are.
struct DeviceRowSliceCounts {
  DeviceSide a;
  std::int64_t first = 0;
  Slices slices;
  DeviceSliceExponents exponents;
  const double* weights = nullptr;  // |B| e at inner index p, for block j of columns of C: element j k + p
  int bits = 0;                     // bits of the accuracy: u = 2^-bits
  DeviceBlockSliceCounts slice_counts;
  std::int32_t* unreachable = nullptr;
};

// Sums of a tile of C, laid out as the sums of multiply(): a column for each vector of B.
struct DeviceProductSums {
  DeviceTile tile;
  DeviceSliceExponents rows;  // exponents from the tile's first row and vector on
  DeviceSliceExponents vectors;
  int slices = 0;      // slices of each operand
  bool fast = false;   // as in SliceDepth
  bool exact = false;  // true: integers of `limbs` words, one rounding; false: FP64, in the order of products
  std::byte* sums = nullptr;
  std::int64_t stride = 0;  // sums in a column
  std::int64_t columns = 0;
  DeviceBlockSliceCounts slice_counts;

  static constexpr int limbs = 6;
  // Largest distance of the exponents of one vector's slices: two such distances, 62 bits of a product, 10
  // bits for the number of products and a sign fit in `limbs` words.
  static constexpr int max_depth = (64 * limbs - 74) / 2;

  static constexpr std::size_t bytes_of_sum(bool exact) {
    return exact ? limbs * sizeof(std::uint64_t) : sizeof(double);
  }
};

// Last step of a batch item: its selection becomes DeviceSelection::none if *unreachable is 1, and the report
// counts its slices.
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

  // Computes the slices of one or two operands.
  virtual void split_successively(const Queue& queue, std::span<const DeviceSuccessiveSplit> splits,
                                  const DeviceCondition& condition) const = 0;
  // Computes the weights |B| e (DeviceRowSliceCounts::weights) for every block of columns of C.
  virtual void weigh_inner_indices(const Queue& queue, const DeviceSide& b,
                                   const DeviceBlockSliceCounts& slice_counts, double* weights,
                                   const DeviceCondition& condition) const = 0;
  // Finds the slice counts of A's rows.
  virtual void find_slice_counts(const Queue& queue, const DeviceRowSliceCounts& rows,
                                 const DeviceCondition& condition) const = 0;
  // Multiplies slices first_a ... of A by slice `slice_b` of B into the first groups of `products`, laid out
  // as by multiply(); only where the slice counts require these products.
  virtual void multiply_counted(const Queue& queue, const DeviceProductSums& sums, const Slices& a,
                                const Slices& b, const Accumulators& products, int first_a,
                                int slice_b) const = 0;
  // Adds the products that multiply_counted() has written to the sums.
  virtual void add_products(const Queue& queue, const DeviceProductSums& sums, const Accumulators& products,
                            int first_a, int slice_b) const = 0;
  // Computes C from the sums.
  virtual void finish_sums(const Queue& queue, const DeviceProductSums& sums) const = 0;
  virtual void finish_item(const Queue& queue, const DeviceOzaki1Item& item) const = 0;
};

}  // namespace kintsugi::core
