// Kernels for residues of real matrices whose moduli have a product of at most KINTSUGI_LIMBS limbs
// (shards.txt).
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_REAL_RESIDUES(KINTSUGI_LIMBS, KINTSUGI_BLOCKS)

}  // namespace kintsugi::core::cuda
