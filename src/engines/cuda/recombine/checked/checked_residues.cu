// Kernels for real elements.
#include "engines/cuda/recombine/checked/checked_residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_CHECKED_RESIDUES(checked_f32, float, 2, ResiduesOfParts)
KINTSUGI_CHECKED_RESIDUES(checked_f64, double, 2, ResiduesOfParts)

}  // namespace kintsugi::core::cuda
