// Residues of real matrices, for moduli whose product KINTSUGI_LIMBS limbs hold (shards.txt).
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_REAL_RESIDUES(KINTSUGI_LIMBS, KINTSUGI_BLOCKS)

}  // namespace kintsugi::core::cuda
