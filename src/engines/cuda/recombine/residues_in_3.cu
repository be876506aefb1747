// Moduli whose product 3 limbs hold.
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_REAL_RESIDUES(3, 2)

}  // namespace kintsugi::core::cuda
