// Tiles of 16 rows of 64 bytes: shapes for AMX, and transposition with AVX-512. Each file that is
// compiled for these has a copy of its own (loops.hpp gives the reason).
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace kintsugi::core {

namespace {

// Shapes of eight tiles, as LDTILECFG reads them. They must be a constant: GCC 12 tells its optimizer
// that only the first eight bytes are read, so it might not store the others.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t reserved[15] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
[[maybe_unused]] constexpr TileShapes tile_shapes;
static_assert(sizeof tile_shapes == 64);

inline void store(std::byte* target, __m512i x, bool streams) {
  if (streams) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target), x);
  } else {
    _mm512_store_si512(target, x);
  }
}

// Transposes 16 x 16 numbers of 32 bits.
void transpose(const std::byte* source, std::byte* target, bool streams) {
  __m512i rows[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) rows[i] = _mm512_load_si512(source + 64 * i);
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
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const __m512i t0 = _mm512_shuffle_i32x4(rows[g], rows[g + 4], 0x44);
    const __m512i t1 = _mm512_shuffle_i32x4(rows[g], rows[g + 4], 0xee);
    const __m512i t2 = _mm512_shuffle_i32x4(rows[g + 8], rows[g + 12], 0x44);
    const __m512i t3 = _mm512_shuffle_i32x4(rows[g + 8], rows[g + 12], 0xee);
    store(target + 64 * g, _mm512_shuffle_i32x4(t0, t2, 0x88), streams);
    store(target + 64 * (g + 4), _mm512_shuffle_i32x4(t0, t2, 0xdd), streams);
    store(target + 64 * (g + 8), _mm512_shuffle_i32x4(t1, t3, 0x88), streams);
    store(target + 64 * (g + 12), _mm512_shuffle_i32x4(t1, t3, 0xdd), streams);
  }
}

}  // namespace

}  // namespace kintsugi::core
