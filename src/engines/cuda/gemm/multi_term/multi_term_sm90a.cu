// Kernels of fp16x3, fp16x3-wide and bf16x6 for tiles of clusters.
#include "engines/cuda/gemm/multi_term/multi_term_sm90.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_TERMS(name, structure, format, tile)                                                     \
  extern "C" __global__ void __cluster_dims__(gemm_cluster_size, 1, 1) __launch_bounds__(term_threads, 1) \
      name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,                      \
           const __grid_constant__ MultiTermParams params) {                                              \
    multi_term_gemm<MultiTermConfig<structure, FormatId::format, tile>>(a, b, params);                    \
  }
KINTSUGI_TERMS(fp16_terms_192, fp16x3_structure, fp16, joined_tiles[0])
KINTSUGI_TERMS(fp16_terms_128, fp16x3_structure, fp16, joined_tiles[1])
KINTSUGI_TERMS(fp16_terms_64, fp16x3_structure, fp16, joined_tiles[2])
KINTSUGI_TERMS(fp16_rescaled_terms_192, fp16x3_wide_structure, fp16, rescaled_tiles[0])
KINTSUGI_TERMS(fp16_rescaled_terms_128, fp16x3_wide_structure, fp16, rescaled_tiles[1])
KINTSUGI_TERMS(fp16_rescaled_terms_64, fp16x3_wide_structure, fp16, rescaled_tiles[2])
KINTSUGI_TERMS(bf16_six_terms_128, bf16x6_structure, bf16, six_term_tiles[0])
KINTSUGI_TERMS(bf16_six_terms_64, bf16x6_structure, bf16, six_term_tiles[1])
#undef KINTSUGI_TERMS

}  // namespace kintsugi::core::cuda
