// Recombination of candidates that share a kernel (engines/device_moduli.hpp).
#pragma once

#include "engines/cuda/recombine/fractions/fractions.hpp"
#include "engines/device_moduli.hpp"

namespace kintsugi::core::cuda {

// Sources and tables of the kernel for candidates that share it, one for each number of moduli.
struct SelectedDigits {
  static constexpr int max_candidates = 5;

  SelectedModuli selected;
  ResiduesOfParts<wide_digit_limbs> source[max_candidates];
  WideDigitTables tables[max_candidates];
  WideFractions fractions[max_candidates];
};

}  // namespace kintsugi::core::cuda
