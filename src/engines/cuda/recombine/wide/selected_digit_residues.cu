// Kernels of wide_digit_residues.cuh for candidates that share them. The selection says how many residues an
// element has.
#include "engines/cuda/common/selected_moduli.cuh"
#include "engines/cuda/recombine/wide/selected.hpp"
#include "engines/cuda/recombine/wide/wide_digit_residues.cuh"

namespace kintsugi::core::cuda {

namespace {

// Recombines by the tables of the selected candidate. Each candidate has code of its own, whose operands are
// constants of its tables: with an address that is not constant they would take registers.
template <bool adds, int index = 0>
__device__ void recombine_selected(const DeviceTile& tile, const SelectedDigits& digits, int selected) {
  if constexpr (index < SelectedDigits::max_candidates) {
    if (selected != index) return recombine_selected<adds, index + 1>(tile, digits, selected);
    using Recombination = WideDigitResidues<max_wide_digit_residues, wide_staged_columns, adds>;
    recombine_block<double, typename Recombination::Block>(
        tile, Recombination(digits.source[index], digits.tables[index]), digits.tables[0].block_columns);
  }
}

}  // namespace

#define KINTSUGI_SELECTED_DIGITS(name, adds)                                                         \
  extern "C" __global__ void __launch_bounds__(block_threads, 2)                                     \
      name(const __grid_constant__ DeviceTile tile, const __grid_constant__ SelectedDigits digits) { \
    const int count = selected_moduli(digits.selected);                                              \
    if (count == 0) {                                                                                \
      exit_in_stream_order();                                                                        \
      return;                                                                                        \
    }                                                                                                \
    grid_dependency_wait();                                                                          \
    recombine_selected<adds>(tile, digits, count - digits.selected.least);                           \
  }
KINTSUGI_SELECTED_DIGITS(selected_digit_residues_f64, false)
KINTSUGI_SELECTED_DIGITS(selected_digit_updates_f64, true)
#undef KINTSUGI_SELECTED_DIGITS

}  // namespace kintsugi::core::cuda
