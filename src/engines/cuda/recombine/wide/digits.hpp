// Recombination by sums of digits: tables and thread blocks, on the host.
#pragma once

#include <utility>

#include "engines/cuda/recombine/arguments.hpp"
#include "engines/cuda/recombine/fractions/fractions.hpp"

namespace kintsugi::core::cuda {

// Columns of C of a thread block that recombines by sums of digits.
int digit_columns(const DeviceTile& tile);

// Source, whose sums are not set, and tables of the kernels for real moduli and wide weights. With more than
// max_wide_digit_residues moduli, the tables have leading digits alone.
using WideDigits = std::pair<ResiduesOfParts<wide_digit_limbs>, WideDigitTables>;
const WideDigits& wide_digits(const ResidueSystem& system);

// Table of fractions of the system's moduli, empty for more than 24.
const WideFractions& wide_fractions(const ResidueSystem& system);

}  // namespace kintsugi::core::cuda
