// Kernel for checked residues of real FP64 matrices of up to 20 moduli, by sums of digits on the matrix unit.
#include "engines/cuda/recombine/checked/checked_digits.cuh"

namespace kintsugi::core::cuda {

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    checked_digits_f64(const __grid_constant__ DeviceTile tile,
                       const __grid_constant__ ResiduesOfParts<wide_digit_limbs> source,
                       const __grid_constant__ WideDigitTables tables, const __grid_constant__ DeviceCheck check,
                       const __grid_constant__ DeviceOpenElements open) {
  if (!holds(tile.condition)) return;
  const CheckedDigits::Block block(tile, tables.block_columns);
  add_open_elements(CheckedDigits(tile, source, tables, check, open).write(block), open);
}

}  // namespace kintsugi::core::cuda
