// Kernels for residues of complex matrices. The product of the moduli must fit into KINTSUGI_LIMBS limbs
// (shards.txt).
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_RESIDUES(residues_c32, Complex<float>, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, KINTSUGI_SOURCE)
#if KINTSUGI_LIMBS > 2  // for fewer limbs: digit_residues.cu
KINTSUGI_RESIDUES(residues_c64, Complex<double>, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, KINTSUGI_SOURCE)
#endif

}  // namespace kintsugi::core::cuda
