// Kernels for residues of complex matrices. The product of the moduli must fit into KINTSUGI_LIMBS limbs
// (shards.txt).
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_COMPLEX_RESIDUES(KINTSUGI_LIMBS, KINTSUGI_BLOCKS, KINTSUGI_SOURCE)

}  // namespace kintsugi::core::cuda
