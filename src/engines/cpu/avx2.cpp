// Products of floating slices with AVX2 and its fused multiply-adds, eight at a time. A register block is one
// panel of rows by 6 or 5 columns; a panel of 16 columns of b takes blocks of 6, 5 and 5. With 6 columns
// there are 12 accumulators, 2 registers of a and 1 of b: nearly all of the 16 registers.
#if defined(__x86_64__)

#include <immintrin.h>

#include "engines/cpu/loops.hpp"

namespace kintsugi::core {

namespace {

struct Avx2 {
  using Register = __m256;
  static constexpr std::int64_t lanes = 8;

  static Register load(const float* x) { return _mm256_loadu_ps(x); }
  static Register broadcast(float x) { return _mm256_set1_ps(x); }
  static Register multiply(Register x, Register y) { return _mm256_mul_ps(x, y); }
  static Register add_product(Register sum, Register x, Register y) { return _mm256_fmadd_ps(x, y, sum); }
  static void add_to(double* sums, Register x, double weight) {
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    const __m256d factor = _mm256_set1_pd(weight);
    _mm256_storeu_pd(sums, _mm256_fmadd_pd(low, factor, _mm256_loadu_pd(sums)));
    _mm256_storeu_pd(sums + 4, _mm256_fmadd_pd(high, factor, _mm256_loadu_pd(sums + 4)));
  }
};

template <int columns>
void add_columns(const FloatBlock& block, const float* a, const float* b, std::int64_t first, double* sums) {
  constexpr int registers_of_panel = 2;
  add_register_block<Avx2, registers_of_panel, columns>(block, a, b + first, sums + first * float_panel);
}

void add_block(const FloatBlock& block, double* sums) {
  for (std::int64_t j = 0; j < block.columns; j += float_panel) {
    const float* b = block.b + j / float_panel * block.panel_stride;
    for (std::int64_t i = 0; i < block.rows; i += float_panel) {
      const float* a = block.a + i / float_panel * block.panel_stride;
      double* target = sums + i * float_columns + j * float_panel;
      add_columns<6>(block, a, b, 0, target);
      if (block.columns - j > 6) add_columns<5>(block, a, b, 6, target);
      if (block.columns - j > 11) add_columns<5>(block, a, b, 11, target);
    }
  }
}

}  // namespace

const FloatKernels floats_avx2{
    .name = "avx2", .relative_rate = 0.9, .relative_rate_fused = 0.9, .add_block = add_block};

// Double-double products four at a time, with AVX2 and its fused multiply-adds.

namespace {

KINTSUGI_DOUBLE_VECTORS(DoublesAvx2, __m256d, 4, _mm256)

struct SumsAvx2 : DoublesAvx2 {
  static Value magnitude(Value x) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), x); }
};

}  // namespace

const PairKernels pairs_avx2{
    .name = "avx2", .relative_time = 24, .add_products = add_pair_products<DoublesAvx2, 1, 4>};

// Sums in two doubles, four at a time, with AVX2.
const SumKernels sums_avx2{
    .name = "avx2", .add_panels = add_sum_panels<SumsAvx2, 2>, .add_vectors = add_sum_vectors<SumsAvx2>};

}  // namespace kintsugi::core

#endif
