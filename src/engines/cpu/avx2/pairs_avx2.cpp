// Double-double products four at a time, with AVX2 and its fused multiply-adds.
#if defined(__x86_64__)

#include "engines/cpu/pairs/pair_loops.hpp"
#include "engines/cpu/pairs/pair_vectors.hpp"

namespace kintsugi::core {

namespace {

KINTSUGI_PAIR_VECTORS(Avx2, __m256d, 4, _mm256)

}  // namespace

const PairKernels pairs_avx2{
    .name = "avx2", .relative_time = 24, .add_products = add_pair_products<Avx2, 1, 4>};

}  // namespace kintsugi::core

#endif
