// Kernels of fp16x3, fp16x3-wide and bf16x6.
#include "engines/cuda/gemm/multi_term/multi_term_sm90.cuh"

namespace kintsugi::core::cuda {

#define KINTSUGI_TERMS(name, structure, format, tile)                                                     \
  extern "C" __global__ void __cluster_dims__(blocks_of_cluster, 1, 1) __launch_bounds__(term_threads, 1) \
      name(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,                      \
           const __grid_constant__ MultiTermParams products) {                                            \
    multi_term_gemm<MultiTermConfig<structure, FormatId::format, tile>>(a, b, products);                  \
  }
KINTSUGI_TERMS(fp16_terms_192, joined_terms, fp16, joined_tiles[0])
KINTSUGI_TERMS(fp16_terms_128, joined_terms, fp16, joined_tiles[1])
KINTSUGI_TERMS(fp16_terms_64, joined_terms, fp16, joined_tiles[2])
KINTSUGI_TERMS(fp16_rescaled_terms_192, rescaled_terms, fp16, rescaled_tiles[0])
KINTSUGI_TERMS(fp16_rescaled_terms_128, rescaled_terms, fp16, rescaled_tiles[1])
KINTSUGI_TERMS(fp16_rescaled_terms_64, rescaled_terms, fp16, rescaled_tiles[2])
KINTSUGI_TERMS(bf16_six_terms_128, six_terms, bf16, six_term_tiles[0])
KINTSUGI_TERMS(bf16_six_terms_64, six_terms, bf16, six_term_tiles[1])
#undef KINTSUGI_TERMS

}  // namespace kintsugi::core::cuda
