// Kernel of AMX. TDPBSSD multiplies 16 vectors by 16 vectors of 64 signed bytes, and adds the products to 16
// x 16 sums, modulo 2^32. Sums are stored column by column, so 16 consecutive sums belong to consecutive
// vectors of a and one vector of b. They are a row of a tile register. Therefore b is the first operand of
// the instruction.
#if defined(__x86_64__) && defined(__linux__)

#include "engines/cpu/int8_kernels.hpp"
#include "engines/cpu/int8_panels.hpp"

namespace kintsugi::core {

namespace {

constexpr std::int64_t lanes = int8_lanes;
constexpr std::int64_t chunk = int8_chunk;
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

}  // namespace

const Int8Kernels int8_amx{.name = "amx",
                           .relative_rate = 7,
                           .tile = tile,
                           .packed_bytes = 2 * panels * panel_bytes,
                           .add_product = add_product};

}  // namespace kintsugi::core

#endif
