// Kernels for real elements and integers of KINTSUGI_LIMBS limbs (shards.txt).
#include "engines/cuda/recombine/checked/checked_residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_CHECKED_RESIDUES(checked_f32, float, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, ResiduesOfParts)
KINTSUGI_CHECKED_RESIDUES(checked_f64, double, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, ResiduesOfParts)

}  // namespace kintsugi::core::cuda
