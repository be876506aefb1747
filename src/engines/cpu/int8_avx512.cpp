// Kernel of AVX-512 VNNI. VPDPBUSD multiplies unsigned by signed bytes and adds four products to each of 16
// sums, modulo 2^32. The elements are signed; so 128 is added to the elements of a, and 128 times the sum of
// b is subtracted:
//   sum_p a_p b_p = sum_p (a_p + 128) b_p - 128 sum_p b_p.
#if defined(__x86_64__)

#include "engines/cpu/int8_kernels.hpp"
#include "engines/cpu/int8_panels.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t lanes = int8_lanes;
constexpr std::int64_t group = int8_group;
constexpr std::int64_t chunk = int8_chunk;
constexpr std::int64_t tile = 128;
constexpr std::int64_t panels = tile / lanes;

// Inner indices packed at once. Four panels of a take 16 KiB and stay in the L1 cache while all columns of b
// are read.
constexpr std::int64_t k_packed = 512;
constexpr std::int64_t panel_bytes = lanes * k_packed;

// Sums held in registers: 4 x 4 registers of 16 sums. That exceeds the latency of VPDPBUSD times its rate, so
// no instruction waits for a sum.
constexpr std::int64_t block_panels = 4;
constexpr std::int64_t block_columns = 4;

// Computes minus[j] = -128 times the sum of vector j of b.
void set_corrections(const std::byte* b, std::int64_t columns, std::int64_t groups, std::uint32_t* minus) {
  const __m512i shift = _mm512_set1_epi8(-128);  // as unsigned bytes: 128
  for (std::int64_t panel = 0; panel * lanes < columns; ++panel) {
    __m512i sums = _mm512_setzero_si512();
    for (std::int64_t g = 0; g < groups; ++g) {
      sums = _mm512_dpbusd_epi32(sums, shift, _mm512_loadu_si512(b + panel * panel_bytes + g * chunk));
    }
    _mm512_storeu_si512(minus + panel * lanes, _mm512_sub_epi32(_mm512_setzero_si512(), sums));
  }
}

// Does the work of _mm512_dpbusd_epi32(). If that intrinsic is used, GCC 12 copies every sum of add_block()
// in each iteration and spills one.
inline void add_products(__m512i& sums, __m512i unsigned_bytes, __m512i signed_bytes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(unsigned_bytes), "v"(signed_bytes));
}

// Adds the products of 64 rows and four columns: panels a ... a + 3 and four vectors of panel b.
void add_block(const std::byte* a, const std::byte* b, std::int64_t groups, const std::uint32_t* minus,
               std::uint32_t* sums) {
  __m512i block[block_columns][block_panels];
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < block_columns; ++j) {
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < block_panels; ++i) {
      block[j][i] = _mm512_set1_epi32(static_cast<int>(minus[j]));
    }
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    __m512i rows[block_panels];
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < block_panels; ++i) {
      rows[i] = _mm512_loadu_si512(a + i * panel_bytes + g * chunk);
    }
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < block_columns; ++j) {
      int four;
      __builtin_memcpy(&four, b + g * chunk + j * group, sizeof four);
      const __m512i column = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < block_panels; ++i) {
        add_products(block[j][i], rows[i], column);
      }
    }
  }
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < block_columns; ++j) {
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < block_panels; ++i) {
      std::uint32_t* target = sums + j * tile + i * lanes;
      _mm512_storeu_si512(target, _mm512_add_epi32(_mm512_loadu_si512(target), block[j][i]));
    }
  }
}

void add_packed(const std::byte* a, std::int64_t rows, const std::byte* b, std::int64_t columns,
                std::int64_t groups, std::uint32_t* sums) {
  alignas(64) std::uint32_t minus[tile];
  set_corrections(b, columns, groups, minus);
  for (std::int64_t i = 0; i < rows; i += block_panels * lanes) {
    for (std::int64_t j = 0; j < columns; j += block_columns) {
      add_block(a + i / lanes * panel_bytes, b + j / lanes * panel_bytes + j % lanes * group, groups,
                minus + j, sums + j * tile + i);
    }
  }
}

void add_product(const Int8Block& block, std::byte* packed, std::uint32_t* sums) {
  std::byte* packed_b = packed + panels * panel_bytes;
  constexpr std::int64_t block_rows = block_panels * lanes;
  const std::int64_t rows = (block.rows + block_rows - 1) / block_rows * block_rows;
  for (std::int64_t p = 0; p < block.length; p += k_packed) {
    const std::int64_t step_length = block.length - p < k_packed ? block.length - p : k_packed;
    for (std::int64_t i = 0; i < rows; i += lanes) {
      pack_panel(block.a + i * block.stride + p, block.stride, step_length, _mm512_set1_epi8(-128),
                 packed + i / lanes * panel_bytes);
    }
    for (std::int64_t j = 0; j < block.columns; j += lanes) {
      pack_panel(block.b + j * block.stride + p, block.stride, step_length, _mm512_setzero_si512(),
                 packed_b + j / lanes * panel_bytes);
    }
    add_packed(packed, rows, packed_b, block.columns, (step_length + group - 1) / group, sums);
  }
}

}  // namespace

const Int8Kernels int8_avx512{.name = "avx512",
                              .relative_rate = 3,
                              .tile = tile,
                              .packed_bytes = 2 * panels * panel_bytes,
                              .add_product = add_product};

}  // namespace kintsugi::core

#endif
