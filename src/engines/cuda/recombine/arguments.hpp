// Parameters of the recombination kernels, other than the tile.
#pragma once

#include <array>
#include <cstdint>

#include "arith/residue/remainder.hpp"
#include "engines/device.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// Sums of accumulator groups, which are added with weights 2^exponent.
struct WeightedSums {
  const void* data;
  std::int64_t rows;          // number of sums per column
  std::int64_t group_stride;  // distance of groups, in sums
  std::int32_t groups;
  std::int32_t smallest_exponent;
  // Exponents of the groups' weights. fitted_exponent stands for the exponent in the batch item's selection
  // (DeviceFit).
  std::int16_t exponents[max_groups];
};

// Residues of sums. Each group has the residues modulo one modulus.
struct ResidueSums {
  const std::uint8_t* data;
  std::int64_t rows;          // number of residues per column
  std::int64_t group_stride;  // distance of groups, in residues
};

// Residues of the parts of elements, and the table that turns them into integers. Each part of a complex
// element has its own column.
template <int Limbs>
struct ResiduesOfParts {
  ResidueSums sums;
  RemainderTable<Limbs> table;
};

// Residues of complex elements, and a table for each part. Both parts are found from the same residues.
template <int Limbs>
struct ResiduesOfElements {
  ResidueSums sums;
  std::array<RemainderTable<Limbs, max_complex_slices>, 2> table;
};

// Largest number of limbs for which there are kernels for residues of complex elements (ResiduesOfElements).
// Integers of more limbs are found from residues of the elements' parts (ResiduesOfParts).
inline constexpr int max_element_limbs = 3;

// Numbers of limbs of the integers that are checked. few_checked_limbs hold integers of 25 moduli, enough for
// sums of up to 2^40 products of two signed 70-bit integers. most_checked_limbs hold integers of all moduli
// (planner/candidates/checked.cpp).
inline constexpr int few_checked_limbs = 3;
inline constexpr int most_checked_limbs = 6;
static_assert(residue_bits(moduli_in_limbs(few_checked_limbs)) >= 2 * 70 + 41);
static_assert(moduli_in_limbs(most_checked_limbs) == max_moduli);

// Matrix to be scaled: C, or its transpose if C's rows are contiguous in memory.
struct ScaledMatrix {
  DeviceMatrix c;
  std::int64_t item;
  DeviceScalars scalars;
  DeviceCondition condition;
};

// Rows per thread block of the kernels that scale C.
inline constexpr std::int64_t scaled_rows = 1024;

// Rows and columns of C that a thread block recombines.
inline constexpr int block_rows = 128;
constexpr int block_columns(ElementType type) { return type == ElementType::c64 ? 16 : 32; }
inline constexpr int warp_size = 32;
inline constexpr int block_warps = 8;
inline constexpr int block_threads = warp_size * block_warps;

// Threads per block of the kernels that recombine one element per thread. A thread block has neighboring rows
// of one column of the tile.
inline constexpr int elements_threads = 256;

}  // namespace kintsugi::core::cuda
