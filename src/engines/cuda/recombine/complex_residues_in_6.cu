// Complex entries, moduli whose product 6 limbs hold.
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_COMPLEX_RESIDUES(6, 1, ResiduesOfParts)

}  // namespace kintsugi::core::cuda
