// Parameters of this folder's kernels, beside a tile.
#pragma once

#include <array>
#include <cstdint>

#include "arith/residue/remainder.hpp"
#include "engines/device.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

struct WeightedSums {
  const void* data;
  std::int64_t rows;
  std::int64_t group_stride;
  std::int32_t groups;
  std::int32_t smallest_exponent;
  std::int16_t exponents[max_groups];  // fitted_exponent: the selection's
};

struct ResidueSums {
  const std::uint8_t* data;
  std::int64_t rows;
  std::int64_t group_stride;
};

// Residues of sums, and what they count for: each part of an element has a column of its own.
template <int Limbs>
struct ResiduesOfParts {
  ResidueSums sums;
  RemainderTable<Limbs> of;
};

// Both parts of a complex element are found from the same residues.
template <int Limbs>
struct ResiduesOfElements {
  ResidueSums sums;
  std::array<RemainderTable<Limbs, most_element_slices>, 2> of;
};

// Complex elements have kernels for residues of their own in so few limbs, and in more for those of their
// parts.
inline constexpr int most_element_limbs = 3;

// Checked integers are those of at most 2^40 products of 70 bits and a bit each (plan/candidates.cpp): 24
// moduli.
inline constexpr int checked_limbs = 3;
static_assert(residue_bits(moduli_in_limbs(checked_limbs)) >= 2 * 70 + 41);

// Columns of C lie along memory, or kernels get C transposed.
struct ScaledMatrix {
  DeviceMatrix c;
  std::int64_t item;
  DeviceScalars scalars;
  DeviceCondition condition;
};

// Rows that a thread block scales.
inline constexpr std::int64_t scaled_at_once = 1024;

// A thread block recombines so many rows and columns of C.
inline constexpr int block_rows = 128;
constexpr int block_columns(ElementType type) { return type == ElementType::c64 ? 16 : 32; }
inline constexpr int warp_size = 32;
inline constexpr int block_warps = 8;
inline constexpr int block_threads = warp_size * block_warps;

// Where every element is taken alone: rows beside each other, a row of blocks for each column of the tile.
inline constexpr int elements_threads = 256;

}  // namespace kintsugi::core::cuda
