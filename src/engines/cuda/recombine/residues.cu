// Kernels for residues of real matrices. The product of the moduli must fit into KINTSUGI_LIMBS limbs
// (shards.txt).
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_REAL_RESIDUES(KINTSUGI_LIMBS, KINTSUGI_BLOCKS)

}  // namespace kintsugi::core::cuda
