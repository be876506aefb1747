// Kernel for any machine: plain C++ that compilers vectorize. Elements are widened to int16 once. What
// remains are dot products of int16 in int32, for which baseline x86-64 has PMADDWD.
#include <algorithm>

#include "engines/cpu/int8_kernels.hpp"

namespace kintsugi::core {

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
                               .add_product = add_product};

}  // namespace kintsugi::core
