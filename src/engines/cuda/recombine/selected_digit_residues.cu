// Kernel of wide_digit_residues.cu for candidates that share it. The selection says how many residues an
// element has.
#include "engines/cuda/common/operands.cuh"
#include "engines/cuda/recombine/fraction_residues.cuh"
#include "engines/cuda/recombine/wide_digit_residues.cuh"

namespace kintsugi::core::cuda {

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    selected_digit_residues_f64(const __grid_constant__ DeviceTile tile,
                                const __grid_constant__ SelectedDigits digits) {
  const int count = selected_moduli(digits.selected);
  if (count == 0) {
    exit_in_stream_order();
    return;
  }
  grid_dependency_wait();
  const int index = count - digits.selected.least;
  using Exact = WideDigitResidues<max_wide_digit_residues, wide_staged_columns, padded_wide_residues>;
  const Exact exact(digits.source[index], digits.tables[index]);
  recombine_by_fractions(tile, digits.source[0].sums, exact, digits.tables[index], digits.fractions[index]);
}

}  // namespace kintsugi::core::cuda
