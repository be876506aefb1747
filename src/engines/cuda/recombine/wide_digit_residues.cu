// Kernel for residues of real FP64 matrices of 16 to 20 moduli, by sums of digits on the matrix unit: by
// fractions, and what those cannot round by exact integers.
#include "engines/cuda/recombine/fraction_residues.cuh"
#include "engines/cuda/recombine/wide_digit_residues.cuh"

namespace kintsugi::core::cuda {

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    wide_digit_residues_f64(const __grid_constant__ DeviceTile tile,
                            const __grid_constant__ ResiduesOfParts<wide_digit_limbs> source,
                            const __grid_constant__ WideDigitTables tables,
                            const __grid_constant__ WideFractions fractions) {
  if (!begin_recombination(tile.condition)) return;
  using Exact = WideDigitResidues<max_wide_digit_residues, wide_staged_columns, padded_wide_residues>;
  recombine_by_fractions(tile, source.sums, Exact(source, tables), tables, fractions);
}

}  // namespace kintsugi::core::cuda
