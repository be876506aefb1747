// Parameters of the kernels that recombine by fractions (arith/residue/fraction_sums.hpp).
#pragma once

#include <cstdint>

#include "arith/residue/fraction_sums.hpp"
#include "engines/cuda/recombine/arguments.hpp"

namespace kintsugi::core::cuda {

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

}  // namespace kintsugi::core::cuda
