#include "lab/numerics/segment_products.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "arith/tile_arithmetic.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace kintsugi::lab {

#if defined(__x86_64__) && defined(__GNUC__)

namespace {

#define KINTSUGI_LAB_AVX2 __attribute__((target("avx2,fma")))

constexpr int depth = 32;           // inner indices of a tile
constexpr int pairs = depth / 2;    // of inner indices, of which one instruction adds the products
constexpr int rows_of_tile = 16;    // of A
constexpr int columns_of_tile = 8;  // of B
constexpr int most_segments = 3;
constexpr int largest_exponent = 60;

// Segments of panels of 16 rows of A, or of 8 columns of B: for each panel, tile, pair of inner indices and
// segment two numbers of every row or column. Each tile has a power of two.
struct Panels {
  int segments = 0;
  int vectors = 0;  // rows or columns of a panel
  std::int64_t tiles = 0;
  std::vector<std::int16_t> values;
  std::vector<float> scales;  // 2^p, of B 2^(p - 19)

  std::int64_t tile_size() const { return std::int64_t{depth} * segments * vectors; }
};

// Elements of one tile, those beyond the operand 0.
struct Tile {
  float elements[rows_of_tile][depth] = {};
};

// Splits a tile into the panels' tile with that index; false if its elements cannot be.
KINTSUGI_LAB_AVX2 bool split_tile(const Tile& tile, std::int64_t k, std::int64_t index, Panels& panels) {
  const int bits = panels.segments * core::segment_bits;
  const std::uint32_t half = 1U << (23 - bits);
  std::int32_t largest = 0;
  std::int64_t sum = 0;
  std::int64_t elements = 0;
  std::int32_t subnormal = 0;
  for (int v = 0; v < panels.vectors; ++v) {
    std::int32_t row_sum = 0;
    std::int32_t row_elements = 0;
    for (int l = 0; l < depth; ++l) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(tile.elements[v][l]) & 0x7fffffffU;
      const auto field = static_cast<std::int32_t>((magnitude + half) >> 23);  // of the rounded exponent
      const std::int32_t counted = magnitude != 0 ? 1 : 0;
      subnormal |= counted & (magnitude < 0x800000U ? 1 : 0);
      largest = std::max(largest, field);
      row_sum += counted * field;
      row_elements += counted;
    }
    sum += row_sum;
    elements += row_elements;
  }
  std::int16_t* target = panels.values.data() + index * panels.tile_size();
  if (elements == 0) {
    std::fill_n(target, panels.tile_size(), std::int16_t{0});
    panels.scales[static_cast<std::size_t>(index)] = 0;
    return true;
  }
  const int exponent = largest - 127;
  const int limit = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k))) - 1;
  if (subnormal != 0 || std::abs(exponent) > largest_exponent || elements * (largest - limit) > sum)
    return false;
  panels.scales[static_cast<std::size_t>(index)] = std::ldexp(1.0F, exponent);
  const float scale = std::ldexp(1.0F, bits - 1 - exponent);
  constexpr float round =
      0x1p23F;  // its sum with a number below 2^22 has that number, rounded, as its last bits
  for (int v = 0; v < panels.vectors; ++v) {
    std::int32_t integers[depth];
    std::int32_t signs[depth];
    for (int l = 0; l < depth; ++l) {
      const float x = tile.elements[v][l];
      integers[l] =
          std::bit_cast<std::int32_t>(std::fabs(x) * scale + round) - std::bit_cast<std::int32_t>(round);
      signs[l] = std::bit_cast<std::int32_t>(x) >> 31;  // 0 or -1
    }
    for (int s = 0; s < panels.segments; ++s) {
      const int shift = core::segment_bits * (panels.segments - 1 - s);
      for (int l = 0; l < depth; ++l) {
        const std::int32_t digit = (integers[l] >> shift) & ((1 << core::segment_bits) - 1);
        target[((l / 2 * panels.segments + s) * panels.vectors + v) * 2 + l % 2] =
            static_cast<std::int16_t>((digit ^ signs[l]) - signs[l]);
      }
    }
  }
  return true;
}

// Splits `vectors` rows of A or columns of B; element l of vector v is at v * vector_stride + l * stride.
bool split(const float* operand, std::int64_t vectors, std::int64_t k, std::int64_t vector_stride,
           std::int64_t stride, Panels& panels) {
  panels.tiles = (k + depth - 1) / depth;
  const std::int64_t count = (vectors + panels.vectors - 1) / panels.vectors * panels.tiles;
  panels.values.resize(static_cast<std::size_t>(count * panels.tile_size()));
  panels.scales.resize(static_cast<std::size_t>(count));
  for (std::int64_t first = 0; first < vectors; first += panels.vectors) {
    const int rows = static_cast<int>(std::min<std::int64_t>(panels.vectors, vectors - first));
    for (std::int64_t t = 0; t < panels.tiles; ++t) {
      const int length = static_cast<int>(std::min<std::int64_t>(depth, k - t * depth));
      Tile tile;
      const float* source = operand + first * vector_stride + t * depth * stride;
      if (stride == 1) {
        for (int v = 0; v < rows; ++v)
          for (int l = 0; l < length; ++l) tile.elements[v][l] = source[v * vector_stride + l];
      } else {
        for (int l = 0; l < length; ++l)
          for (int v = 0; v < rows; ++v) tile.elements[v][l] = source[v * vector_stride + l * stride];
      }
      if (!split_tile(tile, k, first / panels.vectors * panels.tiles + t, panels)) return false;
    }
  }
  return true;
}

// Sets C's sums, 8 to a row: products of `Rows` rows of a panel of A, from `row` on, and of a panel of B.
template <int A, int B, int Rows>
KINTSUGI_LAB_AVX2 void multiply_panels(const std::int16_t* a, const float* scales_a, const std::int16_t* b,
                                       const float* scales_b, std::int64_t tiles, int row, float* sums) {
  constexpr int weights = 4;
  __m256 total[Rows];
  for (int r = 0; r < Rows; ++r) total[r] = _mm256_setzero_ps();
  for (std::int64_t t = 0; t < tiles; ++t) {
    __m256i sum[Rows][weights];
    for (int r = 0; r < Rows; ++r)
      for (int w = 0; w < weights; ++w) sum[r][w] = _mm256_setzero_si256();
    for (int p = 0; p < pairs; ++p) {
      __m256i columns[B];
      for (int j = 0; j < B; ++j)
        columns[j] =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + (p * B + j) * 2 * columns_of_tile));
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 3
        for (int i = 0; i < A; ++i) {
          std::int32_t element;
          std::memcpy(&element, a + ((p * A + i) * rows_of_tile + row + r) * 2, sizeof element);
          const __m256i both = _mm256_set1_epi32(element);
#pragma GCC unroll 3
          for (int j = 0; j < B; ++j)
            if (i + j < weights)
              sum[r][i + j] = _mm256_add_epi32(sum[r][i + j], _mm256_madd_epi16(both, columns[j]));
        }
      }
    }
    const __m256 scale = _mm256_set1_ps(scales_a[t] * scales_b[t]);
    for (int r = 0; r < Rows; ++r) {  // core::tile_value()
      const __m256 high = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32(sum[r][0], 7), sum[r][1]));
      const __m256 low = _mm256_cvtepi32_ps(_mm256_add_epi32(_mm256_slli_epi32(sum[r][2], 7), sum[r][3]));
      total[r] = _mm256_fmadd_ps(_mm256_fmadd_ps(low, _mm256_set1_ps(0x1p-14F), high), scale, total[r]);
    }
    a += std::int64_t{depth} * A * rows_of_tile;
    b += std::int64_t{depth} * B * columns_of_tile;
  }
  for (int r = 0; r < Rows; ++r) _mm256_storeu_ps(sums + r * columns_of_tile, total[r]);
}

template <int A, int B>
void multiply(const Panels& a, const Panels& b, std::int64_t m, std::int64_t n, float* c) {
  constexpr int rows = 2;                        // whose sums fit the registers
  constexpr std::int64_t columns_at_once = 128;  // whose segments stay in a cache
  float sums[rows_of_tile * columns_of_tile];
  for (std::int64_t first = 0; first < n; first += columns_at_once) {
    for (std::int64_t i = 0; i < m; i += rows_of_tile) {
      for (std::int64_t j = first; j < std::min(n, first + columns_at_once); j += columns_of_tile) {
        const std::int64_t tile_a = i / rows_of_tile * a.tiles;
        const std::int64_t tile_b = j / columns_of_tile * b.tiles;
        for (int row = 0; row < rows_of_tile; row += rows)
          multiply_panels<A, B, rows>(a.values.data() + tile_a * a.tile_size(), a.scales.data() + tile_a,
                                      b.values.data() + tile_b * b.tile_size(), b.scales.data() + tile_b,
                                      a.tiles, row, sums + row * columns_of_tile);
        for (std::int64_t r = 0; r < std::min<std::int64_t>(rows_of_tile, m - i); ++r)
          std::copy_n(sums + r * columns_of_tile, std::min<std::int64_t>(columns_of_tile, n - j),
                      c + (i + r) * n + j);
      }
    }
  }
}

}  // namespace

bool multiply_segments(int segments_a, int segments_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       const float* a, const float* b, float* c) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return false;
  Panels of_a{.segments = segments_a, .vectors = rows_of_tile, .tiles = 0, .values = {}, .scales = {}};
  Panels of_b{.segments = segments_b, .vectors = columns_of_tile, .tiles = 0, .values = {}, .scales = {}};
  if (!split(a, m, k, k, 1, of_a) || !split(b, n, k, 1, n, of_b)) return false;
  for (float& scale : of_b.scales) scale *= 0x1p-19F;
  const auto multiply_by = segments_a == 2 ? (segments_b == 2 ? multiply<2, 2> : multiply<2, 3>)
                                           : (segments_b == 2 ? multiply<3, 2> : multiply<3, 3>);
  multiply_by(of_a, of_b, m, n, c);
  return true;
}

#else

bool multiply_segments(int, int, std::int64_t, std::int64_t, std::int64_t, const float*, const float*,
                       float*) {
  return false;
}

#endif

}  // namespace kintsugi::lab
