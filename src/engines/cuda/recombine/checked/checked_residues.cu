// Kernels that recombine residues and check every element: one for complex elements if KINTSUGI_NAME is
// defined, else those for real elements and integers of KINTSUGI_LIMBS limbs (shards.txt).
#include "engines/cuda/recombine/checked/checked_residues.cuh"

namespace kintsugi::core::cuda {

#ifdef KINTSUGI_NAME
KINTSUGI_CHECKED_RESIDUES(KINTSUGI_NAME, Complex<KINTSUGI_REAL>, few_checked_limbs, 1, ResiduesOfElements)
#else
KINTSUGI_CHECKED_RESIDUES(checked_f32, float, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, ResiduesOfParts)
KINTSUGI_CHECKED_RESIDUES(checked_f64, double, KINTSUGI_LIMBS, KINTSUGI_BLOCKS, ResiduesOfParts)
#endif

}  // namespace kintsugi::core::cuda
