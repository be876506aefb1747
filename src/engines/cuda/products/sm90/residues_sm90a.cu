// The kernels of ozaki2.
#include "engines/cuda/products/sm90/residues.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_RESIDUES(name, tile)                                                    \
  extern "C" __global__ void __cluster_dims__(blocks_of_cluster, 1, 1)                   \
      __launch_bounds__(ResidueTile::threads, 1)                                         \
          name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b, \
               const __grid_constant__ ResidueProducts products) {                       \
    multiply_residues<ResidueConfig<tile>>(a, b, products);                              \
  }
KINTSUGI_RESIDUES(residue_products_256, residue_tiles[0])
KINTSUGI_RESIDUES(residue_products_128, residue_tiles[1])
#undef KINTSUGI_RESIDUES

}  // namespace kintsugi::core::cuda
