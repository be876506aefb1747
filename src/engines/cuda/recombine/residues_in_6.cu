// Moduli whose product 6 limbs hold.
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_RESIDUES_OF_LIMBS(6, 1, 1)

}  // namespace kintsugi::core::cuda
