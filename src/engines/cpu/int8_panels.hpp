// Packing of 16 vectors of bytes with AVX-512. Only files of families include this header. Its functions are
// static, so each file has its own copy, compiled with its own flags.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

// A panel is 16 vectors, interleaved by groups of four elements. The first group of all 16 vectors fills a
// register; the second group of all 16 vectors follows, and so on.
constexpr std::int64_t int8_lanes = 16;  // vectors of a panel
constexpr std::int64_t int8_group = 4;   // elements of a group
constexpr std::int64_t int8_chunk = 64;  // elements read at once from one vector; bytes of a register

// First half of a transposition of 16 x 16 elements of 32 bits. It transposes 4 x 4 elements in each 128-bit
// lane of four registers at a time.
static inline void transpose_quads(__m512i* rows) {
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512i t0 = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    const __m512i t1 = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    const __m512i t2 = _mm512_unpacklo_epi32(rows[i + 2], rows[i + 3]);
    const __m512i t3 = _mm512_unpackhi_epi32(rows[i + 2], rows[i + 3]);
    rows[i] = _mm512_unpacklo_epi64(t0, t2);
    rows[i + 1] = _mm512_unpackhi_epi64(t0, t2);
    rows[i + 2] = _mm512_unpacklo_epi64(t1, t3);
    rows[i + 3] = _mm512_unpackhi_epi64(t1, t3);
  }
}

// Second half. After transpose_quads(), 128-bit lane l of row 4 v + g holds vectors 4 v ... 4 v + 3 of group
// 4 l + g.
static inline void store_groups(const __m512i* rows, std::byte* target) {
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const __m512i t0 = _mm512_shuffle_i32x4(rows[g], rows[g + 4], 0x44);
    const __m512i t1 = _mm512_shuffle_i32x4(rows[g], rows[g + 4], 0xee);
    const __m512i t2 = _mm512_shuffle_i32x4(rows[g + 8], rows[g + 12], 0x44);
    const __m512i t3 = _mm512_shuffle_i32x4(rows[g + 8], rows[g + 12], 0xee);
    _mm512_storeu_si512(target + (g + 0) * int8_chunk, _mm512_shuffle_i32x4(t0, t2, 0x88));
    _mm512_storeu_si512(target + (g + 4) * int8_chunk, _mm512_shuffle_i32x4(t0, t2, 0xdd));
    _mm512_storeu_si512(target + (g + 8) * int8_chunk, _mm512_shuffle_i32x4(t1, t3, 0x88));
    _mm512_storeu_si512(target + (g + 12) * int8_chunk, _mm512_shuffle_i32x4(t1, t3, 0xdd));
  }
}

// Packs one panel of vectors of `length` elements. Bits of the elements are flipped where `shift` has ones.
// The panel's bytes after `length`, to the end of a chunk, are zeros, which are not flipped.
static inline void pack_panel(const std::int8_t* vectors, std::int64_t stride, std::int64_t length,
                              __m512i shift, std::byte* panel) {
  for (std::int64_t p = 0; p < length; p += int8_chunk) {
    const std::int64_t left = length - p;
    const __mmask64 inside = left >= int8_chunk ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    __m512i rows[int8_lanes];
#pragma GCC unroll 16
    for (std::int64_t v = 0; v < int8_lanes; ++v) {
      const __m512i row = _mm512_maskz_loadu_epi8(inside, vectors + v * stride + p);
      rows[v] = _mm512_maskz_mov_epi8(inside, _mm512_xor_si512(row, shift));
    }
    transpose_quads(rows);
    store_groups(rows, panel + p * int8_lanes);
  }
}

}  // namespace kintsugi::core
