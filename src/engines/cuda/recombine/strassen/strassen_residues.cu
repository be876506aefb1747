// Kernel for residues of Strassen's seven products in FP64.
#include "engines/cuda/recombine/strassen/strassen_residues.cuh"

namespace kintsugi::core::cuda {

extern "C" __global__ void __launch_bounds__(block_threads, 2)
    strassen_residues_f64(const __grid_constant__ DeviceTile tile,
                          const __grid_constant__ StrassenResidues::Source source,
                          const __grid_constant__ StrassenResidues::Tables tables) {
  recombine_block<double, StrassenBlock>(tile, StrassenResidues(source, tables), tables.block_columns);
}

}  // namespace kintsugi::core::cuda
