// Operands of the probe kernels, their layout and their results, computed by the same functions on host and
// device.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::measure {

// Mixes all bits (the finalizer of MurmurHash3, A. Appleby).
KINTSUGI_HOST_DEVICE constexpr std::uint32_t probe_bits(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bU;
  x ^= x >> 13;
  x *= 0xc2b2ae35U;
  return x ^ (x >> 16);
}

enum class ProbeSide : std::uint8_t { a, b };

// Returns element k of row `vector` of A, or of column `vector` of B, as an integer from -limit to limit; in
// a floating-point format the element is that integer over limit + 1. Vectors and k are below 4096.
KINTSUGI_HOST_DEVICE constexpr int probe_element(ProbeSide side, int vector, int k, int limit) {
  const std::uint32_t key = (side == ProbeSide::a ? 0x10000000U : 0x20000000U) +
                            static_cast<std::uint32_t>(vector) * 4096U + static_cast<std::uint32_t>(k);
  return static_cast<int>(probe_bits(key) % static_cast<std::uint32_t>(2 * limit + 1)) - limit;
}

// Largest numerator that the format holds with the denominator limit + 1: for 11 significant bits, for 8, and
// for int8.
inline constexpr int probe_limit_11_bits = 2047;
inline constexpr int probe_limit_8_bits = 255;
inline constexpr int probe_limit_int8 = 127;

// Passes over the operands after which sums restart from 0, so that their size is that of real products.
inline constexpr int probe_period = 64;

// ------------------------------------------------------- wgmma: operands in shared memory
// A pass multiplies rows of 128 bytes in four instructions of 32 bytes each, for every format.
inline constexpr int wgmma_row_bytes = 128;
inline constexpr int wgmma_m = 64;
inline constexpr int wgmma_n = 256;
inline constexpr int wgmma_warpgroups = 2;
inline constexpr int wgmma_shared_bytes = (wgmma_warpgroups * wgmma_m + wgmma_n) * wgmma_row_bytes;

// Returns the offset of byte `byte` of row `row` under the 128-byte swizzle: units of 16 bytes are permuted
// within a row by the lowest three bits of the row number (PTX ISA, asynchronous warpgroup-level matrix
// layouts).
KINTSUGI_HOST_DEVICE constexpr int swizzled_offset(int row, int byte) {
  return row * wgmma_row_bytes + (((byte / 16) ^ (row % 8)) * 16) + byte % 16;
}

// Row and column of accumulator `index` of a thread of a warpgroup; also for the 16 x 8 tile of mma.sync and
// the 32 threads of its warp (PTX ISA, fragments of D).
KINTSUGI_HOST_DEVICE constexpr int fragment_row(int thread, int index) {
  return thread / 32 * 16 + thread % 32 / 4 + index % 4 / 2 * 8;
}
KINTSUGI_HOST_DEVICE constexpr int fragment_column(int thread, int index) {
  return index / 4 * 8 + thread % 4 * 2 + index % 2;
}

// ------------------------------------------------------- mma.sync: operands in registers
// A warp multiplies mma_tiles x mma_tiles tiles of 16 x 8, 32 bytes of k each, in a pass.
inline constexpr int mma_tiles = 4;
inline constexpr int mma_row_bytes = 32;
inline constexpr int mma_m = 16 * mma_tiles;
inline constexpr int mma_n = 8 * mma_tiles;
inline constexpr int mma_warps = 8;

// ------------------------------------------------------- copies
KINTSUGI_HOST_DEVICE constexpr std::uint32_t probe_word(std::uint64_t index) {
  return probe_bits(static_cast<std::uint32_t>(index));
}

}  // namespace kintsugi::measure
