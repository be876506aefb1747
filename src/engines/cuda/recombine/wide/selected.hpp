// Recombination of candidates that share a kernel (engines/device_shared_kernels.hpp).
#pragma once

#include "engines/cuda/recombine/arguments.hpp"
#include "engines/device_moduli.hpp"

namespace kintsugi::core::cuda {

// Sources and tables of the kernels for candidates that share them, one for each number of moduli.
struct SelectedDigits {
  static constexpr int max_candidates = 5;

  SelectedModuli selected;
  ResiduesOfParts<wide_digit_limbs> source[max_candidates];
  WideDigitTables tables[max_candidates];
};

}  // namespace kintsugi::core::cuda
