// Kernel of AVX-512 IFMA. VPMADD52LUQ and VPMADD52HUQ add the low and the high 52 bits of products of
// unsigned 52-bit integers to 64-bit sums. The words are signed; so 2^51 is added to the words of both
// operands, and the error of the sums is subtracted afterwards:
//   sum_p a_p b_p = sum_p (a_p + 2^51) (b_p + 2^51)
//                    - 2^51 (sum_p (a_p + 2^51) + sum_p (b_p + 2^51)) + n 2^102
// for n products, modulo 2^128.
#if defined(__x86_64__)

#include <immintrin.h>

#include "engines/cpu/kernels.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t lanes = 8;

// Sums held in registers: low and high sums of 16 rows and 4 columns, in 16 registers. That exceeds the
// latency of VPMADD52 times its rate, so no instruction waits for a sum.
constexpr std::int64_t panels = 2;
constexpr std::int64_t panel_rows = panels * lanes;
constexpr std::int64_t block_columns = 4;

// Inner indices packed at once. Each operand takes 256 KiB, and as much is prefetched for the next step, in
// an L2 cache of 1 MiB. The sums, 1 MiB, pass through this cache.
constexpr std::int64_t k_packed = 128;

// Largest number of products in a sum. Low halves and words are below 2^52; so sums of this many of them are
// below 2^64.
constexpr std::int64_t max_products = 4096;
static_assert(max_products % k_packed == 0);

constexpr std::int64_t shift = std::int64_t{1} << 51;

// Packed operands and sums of a tile. Rows of a are in panels [k][16], columns of b are [column][k]. The sums
// have not been added to the accumulators yet.
struct Tile {
  std::uint64_t a[int52_tile * k_packed];
  std::uint64_t b[int52_tile * k_packed];
  std::uint64_t low[int52_tile * int52_tile];  // column-major
  std::uint64_t high[int52_tile * int52_tile];
  std::uint64_t row_sums[int52_tile];  // sums of the words, with 2^51 added to each word
  std::uint64_t column_sums[int52_tile];
  std::int64_t products;  // number of products in each sum
};

// Returns words p ... p + 7 of a vector with 2^51 added to each. Words from index `length` on are zeros.
inline __m512i shifted_words(const std::int64_t* vector, std::int64_t p, std::int64_t length) {
  const std::int64_t left = length - p;
  const auto inside = static_cast<__mmask8>(left >= lanes ? 0xff : (1 << left) - 1);
  return _mm512_maskz_add_epi64(inside, _mm512_maskz_loadu_epi64(inside, vector + p),
                                _mm512_set1_epi64(shift));
}

// Transposes 8 x 8 elements: first pairs of two rows, then 128-bit lanes of four pairs.
inline void transpose(__m512i* rows) {
  __m512i pairs[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm512_unpacklo_epi64(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi64(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 2
  for (int odd = 0; odd < 2; ++odd) {
    const __m512i t0 = _mm512_shuffle_i64x2(pairs[odd], pairs[odd + 2], 0x88);
    const __m512i t1 = _mm512_shuffle_i64x2(pairs[odd + 4], pairs[odd + 6], 0x88);
    const __m512i t2 = _mm512_shuffle_i64x2(pairs[odd], pairs[odd + 2], 0xdd);
    const __m512i t3 = _mm512_shuffle_i64x2(pairs[odd + 4], pairs[odd + 6], 0xdd);
    rows[odd] = _mm512_shuffle_i64x2(t0, t1, 0x88);
    rows[odd + 2] = _mm512_shuffle_i64x2(t2, t3, 0x88);
    rows[odd + 4] = _mm512_shuffle_i64x2(t0, t1, 0xdd);
    rows[odd + 6] = _mm512_shuffle_i64x2(t2, t3, 0xdd);
  }
}

// Packs eight rows of a panel; length <= k_packed words of each.
void pack_rows(const std::int64_t* vectors, std::int64_t stride, std::int64_t length, std::uint64_t* panel,
               std::uint64_t* row_sums) {
  __m512i sums = _mm512_loadu_si512(row_sums);
  for (std::int64_t p = 0; p < length; p += lanes) {
    __m512i rows[lanes];
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < lanes; ++i) rows[i] = shifted_words(vectors + i * stride, p, length);
    transpose(rows);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < lanes; ++i) {
      _mm512_storeu_si512(panel + (p + i) * panel_rows, rows[i]);
      sums = _mm512_add_epi64(sums, rows[i]);
    }
  }
  _mm512_storeu_si512(row_sums, sums);
}

void pack_column(const std::int64_t* vector, std::int64_t length, std::uint64_t* column,
                 std::uint64_t& column_sum) {
  __m512i sums = _mm512_setzero_si512();
  for (std::int64_t p = 0; p < length; p += lanes) {
    const __m512i words = shifted_words(vector, p, length);
    _mm512_storeu_si512(column + p, words);
    sums = _mm512_add_epi64(sums, words);
  }
  column_sum += static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sums));
}

void pack(const Int52Block& block, std::int64_t p, std::int64_t length, Tile& tile) {
  for (std::int64_t i = 0; i < block.rows; i += lanes) {
    pack_rows(block.a + i * block.stride + p, block.stride, length,
              tile.a + i / panel_rows * panel_rows * k_packed + i % panel_rows, tile.row_sums + i);
  }
  for (std::int64_t j = 0; j < block.columns; ++j) {
    pack_column(block.b + j * block.stride + p, length, tile.b + j * k_packed, tile.column_sums[j]);
  }
}

inline void add_products(__m512i& low, __m512i& high, __m512i rows, __m512i column) {
  asm("vpmadd52luq %2, %1, %0" : "+v"(low) : "v"(rows), "v"(column));
  asm("vpmadd52huq %2, %1, %0" : "+v"(high) : "v"(rows), "v"(column));
}

inline void add_to_memory(std::uint64_t* target, __m512i sums) {
  _mm512_storeu_si512(target, _mm512_add_epi64(_mm512_loadu_si512(target), sums));
}

// Adds the products of 16 rows and four columns.
void add_block(const std::uint64_t* a, const std::uint64_t* b, std::int64_t length, std::uint64_t* low_sums,
               std::uint64_t* high_sums) {
  for (std::int64_t j = 0; j < block_columns; ++j) {
    for (std::int64_t i = 0; i < panels; ++i) {
      _mm_prefetch(reinterpret_cast<const char*>(low_sums + j * int52_tile + i * lanes), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(high_sums + j * int52_tile + i * lanes), _MM_HINT_T0);
    }
  }
  __m512i low[block_columns][panels], high[block_columns][panels];
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < block_columns; ++j) {
#pragma GCC unroll 2
    for (std::int64_t i = 0; i < panels; ++i) low[j][i] = high[j][i] = _mm512_setzero_si512();
  }
  for (std::int64_t p = 0; p < length; ++p) {
    __m512i rows[panels];
#pragma GCC unroll 2
    for (std::int64_t i = 0; i < panels; ++i) rows[i] = _mm512_loadu_si512(a + p * panel_rows + i * lanes);
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < block_columns; ++j) {
      const __m512i column = _mm512_set1_epi64(static_cast<std::int64_t>(b[j * k_packed + p]));
#pragma GCC unroll 2
      for (std::int64_t i = 0; i < panels; ++i) add_products(low[j][i], high[j][i], rows[i], column);
    }
  }
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < block_columns; ++j) {
#pragma GCC unroll 2
    for (std::int64_t i = 0; i < panels; ++i) {
      add_to_memory(low_sums + j * int52_tile + i * lanes, low[j][i]);
      add_to_memory(high_sums + j * int52_tile + i * lanes, high[j][i]);
    }
  }
}

// Prefetches words p ... p + k_packed - 1 of one vector for the next packing. `index` counts the vectors of a
// from 0 on, and the vectors of b from int52_tile on.
void prefetch(const Int52Block& block, std::int64_t p, std::int64_t index) {
  const bool is_a = index < int52_tile;
  const std::int64_t v = is_a ? index : index - int52_tile;
  if (v >= (is_a ? block.rows : block.columns) || p + k_packed > block.length) return;
  const std::int64_t* words = (is_a ? block.a : block.b) + v * block.stride + p;
  for (std::int64_t line = 0; line < k_packed; line += lanes) {
    _mm_prefetch(reinterpret_cast<const char*>(words + line), _MM_HINT_T1);
  }
}

// Multiplies the packed operands. With each register block it prefetches one vector for the next step, which
// begins at inner index p.
void add_packed(const Int52Block& block, std::int64_t length, std::int64_t p, Tile& tile) {
  static_assert(int52_tile / block_columns * (int52_tile / panel_rows) >= 2 * int52_tile);
  std::int64_t next_vector = 0;
  for (std::int64_t j = 0; j < block.columns; j += block_columns) {
    for (std::int64_t i = 0; i < block.rows; i += panel_rows) {
      prefetch(block, p, next_vector++);
      const std::int64_t element = i + j * int52_tile;
      add_block(tile.a + i * k_packed, tile.b + j * k_packed, length, tile.low + element,
                tile.high + element);
    }
  }
  tile.products += length;
}

void clear(Tile& tile) {
  __builtin_memset(tile.low, 0, sizeof tile.low);
  __builtin_memset(tile.high, 0, sizeof tile.high);
  __builtin_memset(tile.row_sums, 0, sizeof tile.row_sums);
  __builtin_memset(tile.column_sums, 0, sizeof tile.column_sums);
  tile.products = 0;
}

// Eight 128-bit integers.
struct Integers {
  __m512i low, high;  // low and high 64 bits of each integer
};

// Adds modulo 2^128. There is a carry if the low sum is below an addend.
inline Integers add(Integers x, Integers y) {
  const __m512i low = _mm512_add_epi64(x.low, y.low);
  const __mmask8 carry = _mm512_cmplt_epu64_mask(low, y.low);
  const __m512i high = _mm512_add_epi64(x.high, y.high);
  return {low, _mm512_mask_sub_epi64(high, carry, high, _mm512_set1_epi64(-1))};
}

// Returns x * 2^Bits; each sum x is below 2^64.
template <int Bits>
inline Integers shifted(__m512i x) {
  return {_mm512_slli_epi64(x, Bits), _mm512_srli_epi64(x, 64 - Bits)};
}

// Eight 128-bit sums in memory; the two 64-bit halves of a sum are adjacent. Each mask selects those of eight
// halves that are inside C.
struct Elements {
  Int52Sum* sums;
  __mmask8 first, second;
};

inline Integers load(Elements elements) {
  const __m512i x = _mm512_maskz_loadu_epi64(elements.first, elements.sums);
  const __m512i y = _mm512_maskz_loadu_epi64(elements.second, elements.sums + lanes / 2);
  return {_mm512_permutex2var_epi64(x, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), y),
          _mm512_permutex2var_epi64(x, _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1), y)};
}

inline void store(Elements elements, Integers x) {
  _mm512_mask_storeu_epi64(
      elements.sums, elements.first,
      _mm512_permutex2var_epi64(x.low, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), x.high));
  _mm512_mask_storeu_epi64(
      elements.sums + lanes / 2, elements.second,
      _mm512_permutex2var_epi64(x.low, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), x.high));
}

inline Integers negative(Integers x) {
  const __m512i ones = _mm512_set1_epi64(-1);
  const Integers complement{_mm512_xor_si512(x.low, ones), _mm512_xor_si512(x.high, ones)};
  return add(complement, {_mm512_set1_epi64(1), _mm512_setzero_si512()});
}

// Adds the tile's sums to the accumulators, or stores them if not `adds`. First subtracts the error that 2^51
// in the words of the operands caused, by the equation at the top of this file.
void add_to_accumulators(const Tile& tile, const Int52Block& block, const Int52Sums& sums, bool adds) {
  // n 2^102 of the equation.
  const Integers squares{_mm512_setzero_si512(), _mm512_set1_epi64(tile.products << (102 - 64))};
  for (std::int64_t j = 0; j < block.columns; ++j) {
    const auto column_sum = _mm512_set1_epi64(static_cast<std::int64_t>(tile.column_sums[j]));
    const Integers column = add(squares, negative(shifted<51>(column_sum)));
    for (std::int64_t i = 0; i < block.rows; i += lanes) {
      const std::int64_t halves = 2 * (block.rows - i);
      const unsigned inside = halves >= 2 * lanes ? 0xffffU : (1U << halves) - 1U;
      const Elements elements{sums.data + i + j * sums.stride, static_cast<__mmask8>(inside),
                              static_cast<__mmask8>(inside >> lanes)};
      const std::int64_t element = i + j * int52_tile;
      const Integers low{_mm512_loadu_si512(tile.low + element), _mm512_setzero_si512()};
      const Integers products = add(shifted<52>(_mm512_loadu_si512(tile.high + element)), low);
      const Integers row = negative(shifted<51>(_mm512_loadu_si512(tile.row_sums + i)));
      const Integers words = add(add(products, row), column);
      store(elements, adds ? add(load(elements), words) : words);
    }
  }
}

void add_product(const Int52Block& block, std::byte* packed, const Int52Sums& sums) {
  auto& tile = *reinterpret_cast<Tile*>(packed);
  for (std::int64_t begin = 0; begin < block.length; begin += max_products) {
    const std::int64_t end = begin + max_products < block.length ? begin + max_products : block.length;
    clear(tile);
    for (std::int64_t p = begin; p < end; p += k_packed) {
      const std::int64_t step_length = end - p < k_packed ? end - p : k_packed;
      pack(block, p, step_length, tile);
      add_packed(block, step_length, p + step_length, tile);
    }
    add_to_accumulators(tile, block, sums, sums.adds || begin > 0);
  }
}

}  // namespace

const Int52Kernels int52_avx512{
    .name = "avx512", .relative_rate = 0.15, .packed_bytes = sizeof(Tile), .add_product = add_product};

}  // namespace kintsugi::core

#endif
