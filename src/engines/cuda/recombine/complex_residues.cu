// Residues of complex matrices, for moduli whose product KINTSUGI_LIMBS limbs hold (shards.txt).
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_COMPLEX_RESIDUES(KINTSUGI_LIMBS, KINTSUGI_BLOCKS, KINTSUGI_SOURCE)

}  // namespace kintsugi::core::cuda
