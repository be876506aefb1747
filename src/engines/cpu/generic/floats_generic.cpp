// Kernel for products of floating slices on any CPU: plain C++ that compilers vectorize.
#include <bit>
#include <cmath>

#include "engines/cpu/floats/float_loops.hpp"

namespace kintsugi::core {

namespace {

#if defined(__FP_FAST_FMAF)
constexpr bool has_fused = true;
#else
constexpr bool has_fused = false;
#endif

// Returns x y + sum rounded once. Without an FMA instruction there are two cases. Products that are normal
// FP32 numbers are exact in FP32, since slices have at most 12 bits. Other products are exact in double.
// Their sum with `sum` is rounded to odd: the rounding error of the sum (two_sum; Knuth) decides its last
// bit. The second rounding, to less than half the bits, then gives the exact sum rounded once.
template <bool normal_products>
float fused(float x, float y, float sum) {
  if constexpr (has_fused) return std::fma(x, y, sum);
  if constexpr (normal_products) return x * y + sum;
  const double product = static_cast<double>(x) * static_cast<double>(y);
  const double addend = sum;
  const double nearest = product + addend;
  const double rounded_addend = nearest - product;
  const double lost = (product - (nearest - rounded_addend)) + (addend - rounded_addend);
  const auto bits = std::bit_cast<std::int64_t>(nearest);
  // `step` leads to the next bit pattern towards the exact sum: up if `lost` has the sum's sign, else down.
  const std::int64_t step = (std::bit_cast<std::int64_t>(lost) ^ bits) < 0 ? -1 : 1;
  const bool is_inexact = lost < 0 || lost > 0;  // false for NaN
  const std::int64_t correction = is_inexact && (bits & 1) == 0 ? step : 0;
  return static_cast<float>(std::bit_cast<double>(bits + correction));
}

constexpr int columns = 2;

// Accumulators of a register block: FloatAccumulators, element by element.
struct Accumulators {
  float sums[columns][float_panel] = {};

  void rescale(float factor) {
    for (auto& column : sums) {
      for (float& sum : column) sum *= factor;
    }
  }

  template <bool normal_products>
  void add_products(const float* a, const float* b, std::int64_t length) {
    for (std::int64_t p = 0; p < length; ++p) {
      for (int c = 0; c < columns; ++c) {
        const float y = b[p * float_panel + c];
        for (std::int64_t i = 0; i < float_panel; ++i)
          sums[c][i] = fused<normal_products>(a[p * float_panel + i], y, sums[c][i]);
      }
    }
  }
};

template <bool normal_products>
void add_register_block(const FloatBlock& block, const float* a, const float* b, double* sums) {
  Accumulators inside;
  for (std::int64_t p = 0; p < block.length; p += block.step) {
    const std::int64_t length = block.length - p < block.step ? block.length - p : block.step;
    for (std::int64_t t = 0; t < block.term_count; ++t) {
      const FloatTerm& term = block.terms[t];
      if (term.rescales) inside.rescale(block.rescale);
      inside.add_products<normal_products>(a + term.a + p * float_panel, b + term.b + p * float_panel,
                                           length);
    }
  }
  for (int c = 0; c < columns; ++c) {
    for (std::int64_t i = 0; i < float_panel; ++i)
      sums[c * float_panel + i] += block.weight * static_cast<double>(inside.sums[c][i]);
  }
}

template <bool normal_products>
void add_blocks(const FloatBlock& block, double* sums) {
  for (std::int64_t j = 0; j < block.columns; j += columns) {
    const float* b = block.b + j / float_panel * block.panel_stride + j % float_panel;
    for (std::int64_t i = 0; i < block.rows; i += float_panel)
      add_register_block<normal_products>(block, block.a + i / float_panel * block.panel_stride, b,
                                          sums + i * float_columns + j * float_panel);
  }
}

void add_block(const FloatBlock& block, double* sums) {
  if (block.normal_products) return add_blocks<true>(block, sums);
  add_blocks<false>(block, sums);
}

}  // namespace

const FloatKernels floats_generic{.name = "generic",
                                  .relative_rate = 0.25,
                                  .relative_rate_fused = has_fused ? 0.25 : 0.01,
                                  .add_block = add_block};

}  // namespace kintsugi::core
