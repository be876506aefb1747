// Moduli whose product 3 limbs hold.
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_RESIDUES_OF_LIMBS(3, 2, 2)

}  // namespace kintsugi::core::cuda
