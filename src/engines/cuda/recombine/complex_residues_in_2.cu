// Complex entries, moduli whose product 2 limbs hold.
#include "engines/cuda/recombine/residues.cuh"

namespace kintsugi::core::cuda {

KINTSUGI_COMPLEX_RESIDUES(2, 2, ResiduesOfEntries)

}  // namespace kintsugi::core::cuda
