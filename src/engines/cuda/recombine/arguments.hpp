// Parameters of the recombination kernels, other than the tile.
#pragma once

#include <array>
#include <cstdint>

#include "arith/residue/digit_sums.hpp"
#include "arith/residue/fraction_sums.hpp"
#include "arith/residue/remainder.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/step_data.hpp"
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

// Residues of sums. Each group has the residues modulo one modulus. Columns are aligned to 16 bytes.
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

// Largest numbers of residues of an element in FP64 that are recombined by sums of digits, if their moduli's
// product fits into digit_limbs limbs. Two columns of 36 residues a warp leave the shared memory of a thread
// block below 99 KB, which is all that some devices have; more than 35 are not needed (cheapest_basis()).
inline constexpr int digit_limbs = 2;
inline constexpr int max_real_digit_residues = moduli_in_limbs(digit_limbs);
inline constexpr int max_complex_digit_residues = 36;
static_assert(max_real_digit_residues == 16);

// Real elements of more residues are recombined by sums of digits of wider weights, up to this number.
inline constexpr int wide_digit_limbs = 3;
inline constexpr int max_wide_digit_residues = 20;
static_assert(residue_bits(max_wide_digit_residues) <= 32 * wide_pieces - 2);

// Residues for which tables and instructions have room: a multiple of the residues that an instruction takes.
constexpr int padded_digit_residues(int count) { return (count + 7) / 8 * 8; }

// Tables for sums of digits, one for each part of an element.
template <int parts, int MaxResidues, int Pieces = weight_pieces>
struct DigitTables {
  std::array<DigitTable<MaxResidues, Pieces>, parts> table;
  std::int32_t block_columns;  // columns of C of a thread block
};
using RealDigitTables = DigitTables<1, padded_digit_residues(max_real_digit_residues)>;
using WideDigitTables = DigitTables<1, padded_digit_residues(max_wide_digit_residues), wide_pieces>;
using ComplexDigitTables = DigitTables<2, padded_digit_residues(max_complex_digit_residues)>;

// Largest number of limbs for which there are kernels for residues of complex elements (ResiduesOfElements).
// Integers of more limbs are found from residues of the elements' parts (ResiduesOfParts).
inline constexpr int max_element_limbs = 3;

// Numbers of limbs of the integers that are checked. few_checked_limbs hold integers of 25 moduli, enough for
// sums of up to 2^40 products of two signed 70-bit integers. most_checked_limbs hold integers of all moduli
// (planner/residue_candidates.cpp).
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

// Columns of C of a thread block that recombines by sums of digits: at most this many, so that one thread
// loads the scale of each vector, and fewer where C would give too few thread blocks.
constexpr int most_digit_columns(ElementType type) { return 4 * block_columns(type); }

// Columns of residues that a warp of these kernels has in shared memory or under way to it, the residues of
// each row, and the bytes of a column.
constexpr int digit_stages(ElementType type) { return type == ElementType::c64 ? 2 : 3; }
constexpr int stored_digit_residues(ElementType type) {
  return type == ElementType::c64 ? max_complex_digit_residues : max_real_digit_residues;
}
constexpr int digit_stage_bytes(ElementType type) { return stored_digit_residues(type) * block_rows; }
constexpr std::int64_t digit_shared_bytes(ElementType type) {
  return block_warps * digit_stages(type) * digit_stage_bytes(type);
}

// Stages of the kernel for wide weights, and its columns of C that pass through shared memory together. They
// are fewer than other kernels', so that a thread block needs less than 99 KB.
inline constexpr int wide_digit_stages = 3;
inline constexpr int wide_staged_columns = 16;

// Threads per block of the kernels that recombine one element per thread. A thread block has neighboring rows
// of one column of the tile.
inline constexpr int elements_threads = 256;

// Tables of fractions.
using RealFractions = FractionTable<padded_digit_residues(max_real_digit_residues)>;
inline constexpr int padded_wide_residues = padded_digit_residues(max_wide_digit_residues);
using WideFractions = FractionTable<padded_wide_residues>;
inline constexpr std::int64_t wide_fraction_shared_bytes =
    block_warps * wide_digit_stages * padded_wide_residues * block_rows;

// True if a table takes this number of moduli.
template <class Fractions>
constexpr bool has_fractions(int count) {
  return count <= Fractions::max_residues;
}

// Sources and tables of the kernel for candidates that share it, one for each number of moduli.
struct SelectedDigits {
  static constexpr int max_candidates = 5;

  SelectedModuli selected;
  ResiduesOfParts<wide_digit_limbs> source[max_candidates];
  WideDigitTables tables[max_candidates];
  WideFractions fractions[max_candidates];
};

}  // namespace kintsugi::core::cuda
