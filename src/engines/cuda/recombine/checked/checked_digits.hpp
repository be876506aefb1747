// Constants of the kernels that recombine and check by sums of digits.
#pragma once

#include <cstdint>

#include "engines/cuda/recombine/arguments.hpp"

namespace kintsugi::core::cuda {

// Largest number of moduli whose weights' leading digits are summed (arith/residue/digit_sums.hpp).
// The tables are those of wide weights. Fewer columns of C pass through shared memory together, so that a
// thread block needs less than 99 KB.
inline constexpr int max_leading_digit_residues = 24;
static_assert(residue_bits(max_leading_digit_residues) <= 32 * (wide_pieces + 1) - 2);
static_assert(padded_digit_residues(max_wide_digit_residues) == max_leading_digit_residues);
inline constexpr int leading_staged_columns = 8;

}  // namespace kintsugi::core::cuda
