// Kernels for residues of FP64 matrices, by sums of digits on the matrix unit: real ones by fractions, and
// what those cannot round by exact integers.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/recombine/fractions.cuh"

namespace kintsugi::core::cuda {

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    recombine_f64_digits(const __grid_constant__ DeviceTile tile,
                         const __grid_constant__ ResiduesOfReals<digit_limbs> source,
                         const __grid_constant__ RealDigitTables tables,
                         const __grid_constant__ RealFractions fractions) {
  if (!begin_recombination(tile.condition)) return;
  recombine_by_fractions(tile, RealDigitResidues(source, tables), fractions);
}

// For the candidate that the condition selects, or for one of several, whose numbers of moduli differ.
extern "C" __global__ void __launch_bounds__(block_threads, 2)
    recombine_f64_wide_digits(const __grid_constant__ DeviceTile tile,
                              const __grid_constant__ SelectedDigits digits) {
  int index = 0;
  if (digits.selected.selection != nullptr) {
    const int count = selected_moduli(digits.selected);
    if (count == 0) return exit_in_stream_order();
    index = count - digits.selected.least;
  }
  if (!begin_recombination(tile.condition)) return;
  recombine_by_fractions(tile, WideDigitResidues<Unchecked>(digits.source[index], digits.tables[index]),
                         digits.fractions[index]);
}

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    recombine_c64_digits(const __grid_constant__ DeviceTile tile,
                         const __grid_constant__ ResiduesOfElements<digit_limbs> source,
                         const __grid_constant__ ComplexDigitTables tables) {
  if (!begin_recombination(tile.condition)) return;
  recombine_block<Complex<double>, ComplexDigitResidues::Block>(tile, ComplexDigitResidues(source, tables),
                                                                tables.block_columns);
}

}  // namespace kintsugi::core::cuda
