// Kernels for residues of complex matrices if KINTSUGI_SOURCE is defined, else of real ones. The
// product of the moduli must fit into KINTSUGI_LIMBS limbs (shards.txt).
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

#ifdef KINTSUGI_SOURCE
KINTSUGI_RESIDUES(residues_c32, Complex<float>, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, KINTSUGI_SOURCE)
#if KINTSUGI_LIMBS > 2  // for fewer limbs: digit_residues.cu
KINTSUGI_RESIDUES(residues_c64, Complex<double>, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, KINTSUGI_SOURCE)
#endif
#else
KINTSUGI_RESIDUES(residues_f32, float, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, ResiduesOfParts)
#if KINTSUGI_LIMBS > 2  // for fewer limbs: digit_residues.cu
KINTSUGI_RESIDUES(residues_f64, double, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, ResiduesOfParts)
#endif
#endif

}  // namespace kintsugi::core::cuda
