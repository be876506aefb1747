// Moduli whose product 2 limbs hold.
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_RESIDUES_OF_LIMBS(2, 3, 2)

}  // namespace kintsugi::core::cuda
