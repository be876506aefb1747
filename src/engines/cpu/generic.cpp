// Kernels for any CPU, in plain C++ that compilers vectorize: products of floating slices, int8 slices,
// 52-bit words and double-double numbers.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engines/cpu/kernels.hpp"
#include "engines/cpu/loops.hpp"

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

constexpr int float_block_columns = 2;

// Accumulators of a register block: FloatAccumulators, element by element.
struct Accumulators {
  float sums[float_block_columns][float_panel] = {};

  void rescale(float factor) {
    for (auto& column : sums) {
      for (float& sum : column) sum *= factor;
    }
  }

  template <bool normal_products>
  void add_products(const float* a, const float* b, std::int64_t length) {
    for (std::int64_t p = 0; p < length; ++p) {
      for (int c = 0; c < float_block_columns; ++c) {
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
  for (int c = 0; c < float_block_columns; ++c) {
    for (std::int64_t i = 0; i < float_panel; ++i)
      sums[c * float_panel + i] += block.weight * static_cast<double>(inside.sums[c][i]);
  }
}

template <bool normal_products>
void add_blocks(const FloatBlock& block, double* sums) {
  for (std::int64_t j = 0; j < block.columns; j += float_block_columns) {
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

// Kernel for int8 slices. Elements are widened to int16 once. What remains are dot products of int16 in
// int32, for which baseline x86-64 has PMADDWD.

namespace {

constexpr std::int64_t tile = 128;

// Inner indices widened at once: each operand takes 64 KiB, and sums stay far below 2^31.
constexpr std::int64_t k_packed = 256;
constexpr std::size_t operand_bytes = sizeof(std::int16_t[tile * k_packed]);

// Elements of C summed at once. Each loaded vector is used for several of them.
constexpr std::int64_t block_rows = 2;
constexpr std::int64_t block_columns = 4;

void widen(const std::int8_t* source, std::int64_t stride, std::int64_t vectors, std::int64_t length,
           std::int16_t* widened) {
  for (std::int64_t v = 0; v < vectors; ++v) {
    for (std::int64_t p = 0; p < length; ++p) widened[v * k_packed + p] = source[v * stride + p];
  }
}

void add_block(const std::int16_t* a, const std::int16_t* b, std::int64_t length, std::uint32_t* sums) {
  static_assert(block_rows == 2 && block_columns == 4);
  const std::int16_t* a1 = a + k_packed;
  const std::int16_t* b1 = b + k_packed;
  const std::int16_t* b2 = b1 + k_packed;
  const std::int16_t* b3 = b2 + k_packed;
  std::int32_t s00 = 0, s10 = 0, s01 = 0, s11 = 0, s02 = 0, s12 = 0, s03 = 0, s13 = 0;
  for (std::int64_t p = 0; p < length; ++p) {
    s00 += a[p] * b[p];
    s10 += a1[p] * b[p];
    s01 += a[p] * b1[p];
    s11 += a1[p] * b1[p];
    s02 += a[p] * b2[p];
    s12 += a1[p] * b2[p];
    s03 += a[p] * b3[p];
    s13 += a1[p] * b3[p];
  }
  const std::int32_t block[block_columns][block_rows] = {{s00, s10}, {s01, s11}, {s02, s12}, {s03, s13}};
  for (std::int64_t j = 0; j < block_columns; ++j) {
    for (std::int64_t i = 0; i < block_rows; ++i) {
      sums[j * tile + i] += static_cast<std::uint32_t>(block[j][i]);
    }
  }
}

void add_product(const Int8Block& block, std::byte* packed, std::uint32_t* sums) {
  auto* widened_a = reinterpret_cast<std::int16_t*>(packed);
  auto* widened_b = widened_a + tile * k_packed;
  const std::int64_t rows = (block.rows + block_rows - 1) / block_rows * block_rows;
  const std::int64_t columns = (block.columns + block_columns - 1) / block_columns * block_columns;
  for (std::int64_t p = 0; p < block.length; p += k_packed) {
    const std::int64_t step_length = std::min(k_packed, block.length - p);
    widen(block.a + p, block.stride, rows, step_length, widened_a);
    widen(block.b + p, block.stride, columns, step_length, widened_b);
    for (std::int64_t j = 0; j < columns; j += block_columns) {
      for (std::int64_t i = 0; i < rows; i += block_rows) {
        add_block(widened_a + i * k_packed, widened_b + j * k_packed, step_length, sums + j * tile + i);
      }
    }
  }
}

}  // namespace

const Int8Kernels int8_generic{.name = "generic",
                               .relative_rate = 0.5,
                               .tile = tile,
                               .packed_bytes = 2 * operand_bytes,
                               .add_product = add_product,
                               .panels = nullptr};

// Kernel for 52-bit words, with the 128-bit product of two 64-bit registers. Operands are not packed.

namespace {

__extension__ using Product = __int128;

// Inner indices added at once. 128 vectors of this length take 256 KiB and are read from the L2 cache.
constexpr std::int64_t k_block = 256;

Int52Sum dot(const std::int64_t* a, const std::int64_t* b, std::int64_t length) {
  Product sum = 0;  // holds 2^25 products, more than k_block
  for (std::int64_t p = 0; p < length; ++p) sum += Product{a[p]} * b[p];
  return static_cast<Int52Sum>(sum);
}

void add_product(const Int52Block& block, std::byte*, const Int52Sums& sums) {
  for (std::int64_t p = 0; p < block.length; p += k_block) {
    const std::int64_t step_length = std::min(k_block, block.length - p);
    for (std::int64_t j = 0; j < block.columns; ++j) {
      for (std::int64_t i = 0; i < block.rows; ++i) {
        Int52Sum& sum = sums.data[i + j * sums.stride];
        const bool add = sums.adds || p > 0;
        sum = (add ? sum : 0) +
              dot(block.a + i * block.stride + p, block.b + j * block.stride + p, step_length);
      }
    }
  }
}

}  // namespace

const Int52Kernels int52_generic{
    .name = "generic", .relative_rate = 0.02, .packed_bytes = 0, .add_product = add_product};

// Kernel for double-double products, one by one.

namespace {

struct OneByOne : ScalarArithmetic {
  static constexpr std::int64_t lanes = 1;
  static Value load(const double* x) { return *x; }
  static void store(double* target, Value x) { *target = x; }
  static Value broadcast(double x) { return x; }
  static Value magnitude(double x) { return std::fabs(x); }
};

}  // namespace

const PairKernels pairs_generic{
    .name = "generic", .relative_time = 200, .add_products = add_pair_products<OneByOne, 4, 1>};

const SumKernels sums_generic{
    .name = "generic", .add_panels = add_sum_panels<OneByOne, 1>, .add_vectors = add_sum_vectors<OneByOne>};

}  // namespace kintsugi::core
