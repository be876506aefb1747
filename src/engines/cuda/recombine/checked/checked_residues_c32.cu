// Kernel for complex FP32 elements.
#include "engines/cuda/recombine/checked/checked_residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_CHECKED_RESIDUES(checked_c32, Complex<float>, few_checked_limbs, 1, ResiduesOfElements)

}  // namespace kintsugi::core::cuda
