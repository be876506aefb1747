// Kernel for complex FP64 elements.
#include "engines/cuda/recombine/checked/checked_residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_CHECKED_RESIDUES(checked_c64, Complex<double>, few_checked_limbs, 1, ResiduesOfElements)

}  // namespace kintsugi::core::cuda
