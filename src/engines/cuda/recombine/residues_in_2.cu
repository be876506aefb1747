// Moduli whose product 2 limbs hold.
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_REAL_RESIDUES(2, 3)

}  // namespace kintsugi::core::cuda
