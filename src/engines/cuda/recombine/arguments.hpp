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

// Sums of accumulator groups, which are added with weights 2^exponent: 64-bit integers or floats, or 128-bit
// integers for sums of 52-bit words.
struct WeightedSums {
  const void* data;
  std::int64_t rows;          // number of sums per column
  std::int64_t group_stride;  // distance of groups, in sums
  std::int32_t groups;
  std::int32_t smallest_exponent;
  // Exponents of the groups' weights. fitted_exponent stands for the exponent in the batch item's selection
  // (DeviceFit).
  std::int16_t exponents[max_groups];
  bool are_floats;
};

// Residues of sums. Each group has the residues modulo one modulus. Columns are aligned to 16 bytes.
struct ResidueSums {
  const std::uint8_t* data;
  std::int64_t rows;          // number of residues per column
  std::int64_t group_stride;  // distance of groups, in residues
};

// Residues of real elements, and the table that turns them into integers.
template <int Limbs>
struct ResiduesOfReals {
  static constexpr int limbs = Limbs;

  ResidueSums sums;
  RemainderTable<Limbs> table;
};

// Residues of complex elements, and a table for each part. Both parts are found from the same residues.
template <int Limbs>
struct ResiduesOfElements {
  static constexpr int limbs = Limbs;

  ResidueSums sums;
  std::array<RemainderTable<Limbs, max_complex_slices>, 2> table;
};

// The same for integers of any size, and also for elements whose parts have residues of their own.
struct ResiduesOfAnyElements : ResiduesOfElements<6> {
  std::int64_t columns;  // columns of residues for each column of C: 1, or 2 if each part has its own
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

// With checks also up to this number, of whose weights only the leading digits are summed.
inline constexpr int max_leading_digit_residues = 24;
static_assert(residue_bits(max_leading_digit_residues) <= 32 * (wide_pieces + 1) - 2);

// Residues for which tables and instructions have room: a multiple of the residues that an instruction takes.
constexpr int padded_digit_residues(int count) { return (count + 7) / 8 * 8; }

// Tables for sums of digits, one for each part of an element.
template <int Parts, int MaxResidues, int Pieces = weight_pieces>
struct DigitTables {
  static constexpr int parts = Parts;
  static constexpr int max_residues = MaxResidues;
  static constexpr int pieces = Pieces;

  std::array<DigitTable<MaxResidues, Pieces>, Parts> table;
  std::int32_t block_columns;  // columns of C of a thread block
};
using RealDigitTables = DigitTables<1, padded_digit_residues(max_real_digit_residues)>;
using WideDigitTables = DigitTables<1, max_leading_digit_residues, wide_pieces>;
using ComplexDigitTables = DigitTables<2, padded_digit_residues(max_complex_digit_residues)>;

// Largest number of limbs for which there are kernels for residues of complex elements (ResiduesOfElements).
// Integers of more limbs are found from residues of the elements' parts (ResiduesOfReals).
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

// Sums of one k-block, and those of the earlier ones, to which they are added (add_outside()).
struct KBlockSums {
  enum class Inside : std::uint8_t { int32, fp32, fp64 };

  const void* inside;
  void* outside;  // 64-bit integers if modulus is 0, else residues
  std::int64_t elements;
  Inside inside_type;
  bool is_first_k_block;
  std::uint32_t modulus = 0;
  std::uint32_t reciprocal = 0;  // floor(2^32 / modulus)
};

// Elements that a thread adds.
inline constexpr std::int64_t k_block_elements = 4;

// Rows and columns of C that a thread block recombines.
inline constexpr int block_rows = 128;
constexpr int block_columns(ElementType type) { return type == ElementType::c64 ? 16 : 32; }
inline constexpr int warp_size = 32;
inline constexpr int block_warps = 8;
inline constexpr int block_threads = warp_size * block_warps;

// Columns of C of a thread block that recombines by sums of digits: at most this many, so that one thread
// loads the scale of each vector, and fewer where C would give too few thread blocks.
constexpr int most_digit_columns(ElementType type) { return 4 * block_columns(type); }

// Columns of residues that a warp of these kernels has in shared memory or under way to it, and the bytes of
// all of them: each has residues of block_rows rows.
constexpr int digit_stages(ElementType type) { return type == ElementType::c64 ? 2 : 3; }
constexpr std::int64_t digit_shared_bytes(ElementType type, int residues) {
  return std::int64_t{block_warps} * digit_stages(type) * residues * block_rows;
}

// Columns of C that pass through shared memory together in the kernel for wide weights. They are fewer than
// other kernels', so that a thread block needs less than 99 KB.
inline constexpr int wide_staged_columns = 16;

// Threads per block of the kernels that recombine one element per thread. A thread block has neighboring rows
// of one column of the tile.
inline constexpr int elements_threads = 256;

// Tables of fractions.
using RealFractions = FractionTable<RealDigitTables::max_residues>;
using WideFractions = FractionTable<WideDigitTables::max_residues>;

// Sources and tables of the kernel for wide weights, one for each candidate that shares it. The candidates
// have different numbers of moduli. Without a selection there is one, which the tile's condition may select.
struct SelectedDigits {
  static constexpr int max_candidates = SelectedModuli::max_candidates;

  SelectedModuli selected;
  ResiduesOfReals<wide_digit_limbs> source[max_candidates];
  WideDigitTables tables[max_candidates];
  WideFractions fractions[max_candidates];
};

}  // namespace kintsugi::core::cuda
