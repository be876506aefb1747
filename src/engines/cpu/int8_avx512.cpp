// Kernels for int8 slices of CPUs with AVX-512: by VNNI, and by AMX.
#if defined(__x86_64__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "engines/cpu/byte_panels.hpp"
#include "engines/cpu/kernels.hpp"

namespace kintsugi::core {

namespace {

// A panel is 16 vectors, interleaved by groups of four elements. The first group of all 16 vectors fills a
// register; the second group of all 16 vectors follows, and so on.
constexpr std::int64_t lanes = 16;  // vectors of a panel
constexpr std::int64_t group = 4;   // elements of a group
constexpr std::int64_t chunk = 64;  // elements read at once from one vector; bytes of a register

// First half of a transposition of 16 x 16 elements of 32 bits. It transposes 4 x 4 elements in each 128-bit
// lane of four registers at a time.
inline void transpose_quads(__m512i* rows) {
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
inline void store_groups(const __m512i* rows, std::byte* target) {
#pragma GCC unroll 4
  for (int g = 0; g < 4; ++g) {
    const __m512i t0 = _mm512_shuffle_i32x4(rows[g], rows[g + 4], 0x44);
    const __m512i t1 = _mm512_shuffle_i32x4(rows[g], rows[g + 4], 0xee);
    const __m512i t2 = _mm512_shuffle_i32x4(rows[g + 8], rows[g + 12], 0x44);
    const __m512i t3 = _mm512_shuffle_i32x4(rows[g + 8], rows[g + 12], 0xee);
    _mm512_storeu_si512(target + (g + 0) * chunk, _mm512_shuffle_i32x4(t0, t2, 0x88));
    _mm512_storeu_si512(target + (g + 4) * chunk, _mm512_shuffle_i32x4(t0, t2, 0xdd));
    _mm512_storeu_si512(target + (g + 8) * chunk, _mm512_shuffle_i32x4(t1, t3, 0x88));
    _mm512_storeu_si512(target + (g + 12) * chunk, _mm512_shuffle_i32x4(t1, t3, 0xdd));
  }
}

// Packs one panel of vectors of `length` elements. Bits of the elements are flipped where `shift` has ones.
// The panel's bytes after `length`, to the end of a chunk, are zeros, which are not flipped.
inline void pack_panel(const std::int8_t* vectors, std::int64_t stride, std::int64_t length, __m512i shift,
                       std::byte* panel) {
  for (std::int64_t p = 0; p < length; p += chunk) {
    const std::int64_t left = length - p;
    const __mmask64 inside = left >= chunk ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    __m512i rows[lanes];
#pragma GCC unroll 16
    for (std::int64_t v = 0; v < lanes; ++v) {
      const __m512i row = _mm512_maskz_loadu_epi8(inside, vectors + v * stride + p);
      rows[v] = _mm512_maskz_mov_epi8(inside, _mm512_xor_si512(row, shift));
    }
    transpose_quads(rows);
    store_groups(rows, panel + p * lanes);
  }
}

// ---------------------------------------------------------------- AVX-512 VNNI

// VPDPBUSD multiplies unsigned by signed bytes and adds four products to each of 16
// sums, modulo 2^32. The elements are signed; so 128 is added to the elements of a, and 128 times the sum of
// b is subtracted:
//   sum_p a_p b_p = sum_p (a_p + 128) b_p - 128 sum_p b_p.
namespace vnni {

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

}  // namespace vnni

#if defined(__linux__)
// ---------------------------------------------------------------- AMX

// TDPBSSD multiplies 16 vectors by 16 vectors of 64 signed bytes, and adds the products to 16
// x 16 sums, modulo 2^32. Sums are stored column by column, so 16 consecutive sums belong to consecutive
// vectors of a and one vector of b. They are a row of a tile register. Therefore b is the first operand of
// the instruction.
namespace amx {

constexpr std::int64_t tile_bytes = lanes * chunk;

// Rows and columns of a tile of C. The tile's sums and packed operands take half a MiB and stay in the L2
// cache. Tiles of 512 are not faster.
constexpr std::int64_t tile = 256;
constexpr std::int64_t panels = tile / lanes;

// Inner indices packed at once. Two panels of a take 16 KiB and stay in the L1 cache while all of b is read.
constexpr std::int64_t k_packed = 512;
constexpr std::int64_t panel_bytes = lanes * k_packed;

// Edge of a register block in tile registers: 2 x 2 tiles of sums, and 2 tiles of each operand.
constexpr std::int64_t block = 2;

// Shapes of eight tiles of 16 rows of 64 bytes, as LDTILECFG reads them. They must be a constant: GCC 12
// tells its optimizer that only the first eight bytes are read, so it might not store the others.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t reserved[15] = {};
  std::uint16_t row_bytes[16] = {chunk, chunk, chunk, chunk, chunk, chunk, chunk, chunk};
  std::uint8_t rows[16] = {lanes, lanes, lanes, lanes, lanes, lanes, lanes, lanes};
};
constexpr TileShapes tile_shapes;
static_assert(sizeof tile_shapes == 64);

// Packs a panel by rows. Each chunk has 16 vectors one after the other, and zeros beyond `length`.
void pack_rows(const std::int8_t* vectors, std::int64_t stride, std::int64_t length, std::byte* panel) {
  for (std::int64_t p = 0; p < length; p += chunk) {
    const std::int64_t left = length - p;
    const __mmask64 inside = left >= chunk ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
#pragma GCC unroll 16
    for (std::int64_t v = 0; v < lanes; ++v) {
      _mm512_storeu_si512(panel + p * lanes + v * chunk,
                          _mm512_maskz_loadu_epi8(inside, vectors + v * stride + p));
    }
  }
}

// Adds the products of 32 vectors of a and 32 of b. Tile registers 0 to 3 hold the sums, 4 and 5 two panels
// of a, 6 and 7 two panels of b.
void add_block(const std::byte* a, const std::byte* b, std::int64_t chunks, std::uint32_t* sums) {
  constexpr std::int64_t stride = tile * sizeof(std::uint32_t);
  std::uint32_t* next_columns = sums + lanes * tile;
  _tile_loadd(0, sums, stride);
  _tile_loadd(1, sums + lanes, stride);
  _tile_loadd(2, next_columns, stride);
  _tile_loadd(3, next_columns + lanes, stride);
  for (std::int64_t c = 0; c < chunks; ++c) {
    _tile_loadd(4, a + c * tile_bytes, chunk);
    _tile_loadd(6, b + c * tile_bytes, chunk);
    _tile_loadd(5, a + panel_bytes + c * tile_bytes, chunk);
    _tile_loadd(7, b + panel_bytes + c * tile_bytes, chunk);
    _tile_dpbssd(0, 6, 4);
    _tile_dpbssd(1, 6, 5);
    _tile_dpbssd(2, 7, 4);
    _tile_dpbssd(3, 7, 5);
  }
  _tile_stored(0, sums, stride);
  _tile_stored(1, sums + lanes, stride);
  _tile_stored(2, next_columns, stride);
  _tile_stored(3, next_columns + lanes, stride);
}

void add_product(const Int8Block& task, std::byte* packed, std::uint32_t* sums) {
  std::byte* packed_b = packed + panels * panel_bytes;
  constexpr std::int64_t multiple = block * lanes;
  const std::int64_t rows = (task.rows + multiple - 1) / multiple * multiple;
  const std::int64_t columns = (task.columns + multiple - 1) / multiple * multiple;
  _tile_loadconfig(&tile_shapes);
  for (std::int64_t p = 0; p < task.length; p += k_packed) {
    const std::int64_t step_length = task.length - p < k_packed ? task.length - p : k_packed;
    for (std::int64_t i = 0; i < rows; i += lanes) {
      pack_panel(task.a + i * task.stride + p, task.stride, step_length, _mm512_setzero_si512(),
                 packed + i / lanes * panel_bytes);
    }
    for (std::int64_t j = 0; j < columns; j += lanes) {
      pack_rows(task.b + j * task.stride + p, task.stride, step_length, packed_b + j / lanes * panel_bytes);
    }
    const std::int64_t chunks = (step_length + chunk - 1) / chunk;
    for (std::int64_t i = 0; i < rows; i += multiple) {
      for (std::int64_t j = 0; j < columns; j += multiple) {
        add_block(packed + i / lanes * panel_bytes, packed_b + j / lanes * panel_bytes, chunks,
                  sums + j * tile + i);
      }
    }
  }
  _tile_release();
}

}  // namespace amx
#endif

}  // namespace

const Int8Kernels int8_avx512{.name = "avx512",
                              .relative_rate = 3,
                              .tile = vnni::tile,
                              .packed_bytes = 2 * vnni::panels * vnni::panel_bytes,
                              .add_product = vnni::add_product,
                              .panels = &panels_avx512};

#if defined(__linux__)
const Int8Kernels int8_amx{.name = "amx",
                           .relative_rate = 7,
                           .tile = amx::tile,
                           .packed_bytes = 2 * amx::panels * amx::panel_bytes,
                           .add_product = amx::add_product,
                           .panels = &panels_amx};
#endif

}  // namespace kintsugi::core

#endif
