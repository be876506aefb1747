// Kernels for residues of real matrices. The product of the moduli must fit into KINTSUGI_LIMBS limbs
// (shards.txt).
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_RESIDUES(residues_f32, float, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, ResiduesOfParts)
#if KINTSUGI_LIMBS > 2  // for fewer limbs: digit_residues.cu
KINTSUGI_RESIDUES(residues_f64, double, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, ResiduesOfParts)
#endif

}  // namespace kintsugi::core::cuda
