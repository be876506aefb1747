// Kernels for residues of real FP64 matrices of 17 to 20 moduli, by sums of digits on the matrix unit.
#include "engines/cuda/recombine/wide/wide_digit_residues.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_WIDE_DIGITS(name, adds)                                                         \
  extern "C" __global__ void __launch_bounds__(block_threads, 2)                                 \
      name(const __grid_constant__ DeviceTile tile,                                              \
           const __grid_constant__ ResiduesOfParts<wide_digit_limbs> source,                     \
           const __grid_constant__ WideDigitTables tables) {                                     \
    if (!begin_recombination(tile.condition)) return;                                            \
    using Recombination = WideDigitResidues<max_wide_digit_residues, wide_staged_columns, adds>; \
    recombine_block<double, Recombination::Block>(tile, Recombination(source, tables),           \
                                                  tables.block_columns);                         \
  }
KINTSUGI_WIDE_DIGITS(wide_digit_residues_f64, false)
KINTSUGI_WIDE_DIGITS(wide_digit_updates_f64, true)
#undef KINTSUGI_WIDE_DIGITS

}  // namespace kintsugi::core::cuda
