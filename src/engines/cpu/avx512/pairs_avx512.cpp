// Double-double products eight at a time, with AVX-512.
#if defined(__x86_64__)

#include "engines/cpu/pairs/pair_loops.hpp"
#include "engines/cpu/pairs/pair_vectors.hpp"

namespace kintsugi::core {

namespace {

KINTSUGI_PAIR_VECTORS(Avx512, __m512d, 8, _mm512)

}  // namespace

const PairKernels pairs_avx512{
    .name = "avx512", .relative_time = 24, .add_products = add_pair_products<Avx512, 2, 3>};

}  // namespace kintsugi::core

#endif
