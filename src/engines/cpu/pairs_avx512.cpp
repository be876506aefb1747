// Double-double products eight at a time, with AVX-512.
#if defined(__x86_64__)

#include <immintrin.h>

#include "engines/cpu/pair_loops.hpp"

namespace kintsugi::core {

namespace {

struct Avx512 {
  using Vector = __m512d;
  static constexpr std::int64_t lanes = 8;
  static Vector load(const double* x) { return _mm512_load_pd(x); }
  static void store(double* target, Vector x) { _mm512_store_pd(target, x); }
  static Vector broadcast(double x) { return _mm512_set1_pd(x); }
  static Vector plus(Vector a, Vector b) { return _mm512_add_pd(a, b); }
  static Vector minus(Vector a, Vector b) { return _mm512_sub_pd(a, b); }
  static Vector times(Vector a, Vector b) { return _mm512_mul_pd(a, b); }
  static Vector fused(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
  static Vector fused_difference(Vector a, Vector b, Vector c) { return _mm512_fmsub_pd(a, b, c); }
};

}  // namespace

const PairKernels pairs_avx512{"avx512", 24, add_pair_products<Avx512, 2, 3>};

}  // namespace kintsugi::core

#endif
