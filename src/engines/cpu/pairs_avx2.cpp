// Double-double products four at a time, with AVX2 and its fused multiply-adds.
#if defined(__x86_64__)

#include <immintrin.h>

#include "engines/cpu/pair_loops.hpp"

namespace kintsugi::core {

namespace {

struct Avx2 {
  using Vector = __m256d;
  static constexpr std::int64_t lanes = 4;
  static Vector load(const double* x) { return _mm256_load_pd(x); }
  static void store(double* target, Vector x) { _mm256_store_pd(target, x); }
  static Vector broadcast(double x) { return _mm256_set1_pd(x); }
  static Vector plus(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  static Vector minus(Vector a, Vector b) { return _mm256_sub_pd(a, b); }
  static Vector times(Vector a, Vector b) { return _mm256_mul_pd(a, b); }
  static Vector fused(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  static Vector fused_difference(Vector a, Vector b, Vector c) { return _mm256_fmsub_pd(a, b, c); }
};

}  // namespace

const PairKernels pairs_avx2{"avx2", 24, add_pair_products<Avx2, 1, 4>};

}  // namespace kintsugi::core

#endif
