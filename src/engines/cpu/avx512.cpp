// Products of floating slices with AVX-512, sixteen at a time. A register block is up to 3 panels of rows by
// 8 columns: 24 accumulators, enough to hide the latency of the additions on all CPUs with AVX-512.
#if defined(__x86_64__)

#include <immintrin.h>

#include "engines/cpu/loops.hpp"

namespace kintsugi::core {

namespace {

struct Avx512 {
  using Register = __m512;
  static constexpr std::int64_t lanes = 16;

  static Register load(const float* x) { return _mm512_loadu_ps(x); }
  static Register broadcast(float x) { return _mm512_set1_ps(x); }
  static Register multiply(Register x, Register y) { return _mm512_mul_ps(x, y); }
  static Register add_product(Register sum, Register x, Register y) { return _mm512_fmadd_ps(x, y, sum); }
  static void add_to(double* sums, Register x, double weight) {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    const __m512d high = _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1)));
    const __m512d factor = _mm512_set1_pd(weight);
    _mm512_storeu_pd(sums, _mm512_fmadd_pd(low, factor, _mm512_loadu_pd(sums)));
    _mm512_storeu_pd(sums + 8, _mm512_fmadd_pd(high, factor, _mm512_loadu_pd(sums + 8)));
  }
};

constexpr int columns = 8;

template <int panels>
void add_rows(const FloatBlock& block, std::int64_t panel, double* sums) {
  const float* a = block.a + panel * block.panel_stride;
  for (std::int64_t j = 0; j < block.columns; j += columns) {
    add_register_block<Avx512, panels, columns>(
        block, a, block.b + j / float_panel * block.panel_stride + j % float_panel,
        sums + (panel * float_columns + j) * float_panel);
  }
}

void add_block(const FloatBlock& block, double* sums) {
  const std::int64_t panels = (block.rows + float_panel - 1) / float_panel;
  std::int64_t panel = 0;
  for (; panel + 3 <= panels; panel += 3) add_rows<3>(block, panel, sums);
  if (panels - panel == 2) add_rows<2>(block, panel, sums);
  if (panels - panel == 1) add_rows<1>(block, panel, sums);
}

}  // namespace

const FloatKernels floats_avx512{
    .name = "avx512", .relative_rate = 1, .relative_rate_fused = 1, .add_block = add_block};

// Double-double products eight at a time, with AVX-512.

namespace {

KINTSUGI_DOUBLE_VECTORS(DoublesAvx512, __m512d, 8, _mm512)

struct SumsAvx512 : DoublesAvx512 {
  static Value magnitude(Value x) { return _mm512_abs_pd(x); }
};

}  // namespace

const PairKernels pairs_avx512{
    .name = "avx512", .relative_time = 24, .add_products = add_pair_products<DoublesAvx512, 2, 3>};

// Sums in two doubles, eight at a time, with AVX-512.
const SumKernels sums_avx512{.name = "avx512",
                             .add_panels = add_sum_panels<SumsAvx512, 4>,
                             .add_vectors = add_sum_vectors<SumsAvx512>};

}  // namespace kintsugi::core

#endif
