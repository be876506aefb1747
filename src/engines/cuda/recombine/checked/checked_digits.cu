// Kernels for checked residues of real FP64 matrices of up to 20 and 24 moduli, by sums of digits on the
// matrix unit.
#include "engines/cuda/recombine/checked/checked_digits.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_CHECKED_DIGITS(name, residues, staged_columns)                                             \
  extern "C" __global__ void __launch_bounds__(block_threads, 2)                                            \
      name(const __grid_constant__ DeviceTile tile,                                                         \
           const __grid_constant__ ResiduesOfParts<wide_digit_limbs> source,                                \
           const __grid_constant__ WideDigitTables tables, const __grid_constant__ WideFractions fractions, \
           const __grid_constant__ DeviceCheck check, const __grid_constant__ DeviceOpenElements open) {    \
    if (!holds(tile.condition)) return;                                                                     \
    using Recombination = CheckedDigits<residues, staged_columns>;                                          \
    const Recombination::Block block(tile, tables.block_columns);                                           \
    add_open_elements(Recombination(tile, source, tables, fractions, check, open).write(block), open);      \
  }
KINTSUGI_CHECKED_DIGITS(checked_digits_f64, max_wide_digit_residues, wide_staged_columns)
KINTSUGI_CHECKED_DIGITS(checked_leading_digits_f64, max_leading_digit_residues, leading_staged_columns)
#undef KINTSUGI_CHECKED_DIGITS

}  // namespace kintsugi::core::cuda
