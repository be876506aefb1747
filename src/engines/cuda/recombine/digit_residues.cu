// Kernels for residues of FP64 matrices, by sums of digits on the matrix unit: real ones by fractions, and
// what those cannot round by exact integers.
#include "engines/cuda/recombine/digit_residues.cuh"

#include "engines/cuda/recombine/fraction_residues.cuh"

namespace kintsugi::core::cuda {

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    digit_residues_f64(const __grid_constant__ DeviceTile tile,
                       const __grid_constant__ ResiduesOfParts<digit_limbs> source,
                       const __grid_constant__ RealDigitTables tables,
                       const __grid_constant__ RealFractions fractions) {
  if (!begin_recombination(tile.condition)) return;
  using Exact =
      DigitResidues<double, ResiduesOfParts<digit_limbs>, padded_digit_residues(max_real_digit_residues)>;
  recombine_by_fractions(tile, source.sums, Exact(source, tables), tables, fractions);
}

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    digit_residues_c64(const __grid_constant__ DeviceTile tile,
                       const __grid_constant__ ResiduesOfElements<digit_limbs> source,
                       const __grid_constant__ ComplexDigitTables tables) {
  if (!begin_recombination(tile.condition)) return;
  using Recombination = DigitResidues<Complex<double>, ResiduesOfElements<digit_limbs>,
                                      padded_digit_residues(max_complex_digit_residues)>;
  recombine_block<Complex<double>, Recombination::Block>(tile, Recombination(source, tables),
                                                         tables.block_columns);
}

}  // namespace kintsugi::core::cuda
