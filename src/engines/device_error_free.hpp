// What an engine with a memory of its own does for products of slices without an error (dgemm-tc): Algorithms 1 to 3 as
// steps. All pointers are the device's. What the plan's slices do not hold is marked, not failed.
#pragma once

#include <cstddef>
#include <cstdint>

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

// Needs of all blocks of C, which have `rows` rows and `vectors` of B's vectors; block (i, j) is element i + j blocks_m.
struct DeviceSliceNeeds {
  SliceNeeds* needs = nullptr;  // null: the number of slices was given, or is whatever vectors ask for
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
  // Where a vector has more slices, or exponents further apart than `most_depth`, *unreachable becomes 1: of all vectors,
  // or of those in blocks whose needs ask for all of B's slices; else of none.
  enum class Complete : std::uint8_t { need_not_be, all, where_needed } complete = Complete::need_not_be;
  std::int32_t most_depth = 0;  // 0: any
  DeviceSliceNeeds needs;
  std::int32_t* unreachable = nullptr;
};

// Algorithm 3: what rows first ... of A, which are split, ask for. *unreachable becomes 1 where there are not enough.
struct DeviceRowNeeds {
  DeviceSide a;
  std::int64_t first = 0;
  Slices slices;
  DeviceSliceExponents exponents;
  const double* weights = nullptr;  // |B| e of block j: element j k + p
  int bits = 0;                     // of the accuracy: u = 2^-bits
  DeviceSliceNeeds needs;
  std::int32_t* unreachable = nullptr;
};

// The sums of a tile of C: its entries' rows and vectors of B lie in the sums as `products` of multiply() do.
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
  DeviceSliceNeeds needs;

  static constexpr int limbs = 6;
  // Of the exponents of one vector's slices: two such depths, 62 bits of a product, 10 of their number and a sign fit.
  static constexpr int most_depth = (64 * limbs - 74) / 2;

  static constexpr std::size_t bytes_of_sum(bool exact) {
    return exact ? limbs * sizeof(std::uint64_t) : sizeof(double);
  }
};

// At the end of an entry of the batch: where it was unreachable, its choice becomes DeviceChoice::none. Adds to the report.
struct DeviceSettlement {
  DeviceChoice* choice = nullptr;
  const std::int32_t* unreachable = nullptr;
  DeviceReport* report = nullptr;
  DeviceSliceNeeds needs;
  int slices = 0;
  bool fast = false;
};

}  // namespace kintsugi::core
