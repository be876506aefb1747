// What the probe kernels multiply and copy, where it lies and what comes out; host and device compute it
// alike.
#pragma once

#include <cstdint>

#include "arith/host_device.hpp"

namespace kintsugi::lab {

// A mixture of all bits (the finaliser of MurmurHash3, A. Appleby).
KINTSUGI_HOST_DEVICE constexpr std::uint32_t probe_bits(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x85ebca6bU;
  x ^= x >> 13;
  x *= 0xc2b2ae35U;
  return x ^ (x >> 16);
}

enum class ProbeSide : std::uint8_t { a, b };

// Element k of row `vector` of A, or of column `vector` of B, as an integer from -limit to limit; in a
// floating format it stands for the integer over limit + 1. Below 4096 vectors and elements.
KINTSUGI_HOST_DEVICE constexpr int probe_element(ProbeSide side, int vector, int k, int limit) {
  const std::uint32_t key = (side == ProbeSide::a ? 0x10000000U : 0x20000000U) +
                            static_cast<std::uint32_t>(vector) * 4096U + static_cast<std::uint32_t>(k);
  return static_cast<int>(probe_bits(key) % static_cast<std::uint32_t>(2 * limit + 1)) - limit;
}

// The largest numerator that the format holds with its denominator, limit + 1: 11 significant bits, 8, or a
// byte.
inline constexpr int probe_limit_11_bits = 2047;
inline constexpr int probe_limit_8_bits = 255;
inline constexpr int probe_limit_int8 = 127;

// Sums begin anew after so many passes over the operands, so that their size is that of sums of real
// products.
inline constexpr int probe_period = 64;

// ------------------------------------------------------- wgmma: operands in shared memory
// A pass multiplies rows of 128 bytes in four instructions of 32 bytes each, whatever the format.
inline constexpr int wgmma_row_bytes = 128;
inline constexpr int wgmma_m = 64;
inline constexpr int wgmma_n = 256;
inline constexpr int wgmma_warpgroups = 2;
inline constexpr int wgmma_shared_bytes = (wgmma_warpgroups * wgmma_m + wgmma_n) * wgmma_row_bytes;

// Where byte `byte` of row `row` lies, by the 128-byte swizzle: units of 16 bytes change places within a row,
// by the lowest three bits of the row (PTX ISA, asynchronous warpgroup-level matrix layouts).
KINTSUGI_HOST_DEVICE constexpr int swizzled_offset(int row, int byte) {
  return row * wgmma_row_bytes + (((byte / 16) ^ (row % 8)) * 16) + byte % 16;
}

// Row and column of accumulator `index` of a thread of a warpgroup; of mma.sync's 16 x 8 the same with its
// warp's 32 threads (PTX ISA, fragments of D).
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
KINTSUGI_HOST_DEVICE constexpr std::uint32_t probe_word(std::uint64_t place) {
  return probe_bits(static_cast<std::uint32_t>(place));
}

}  // namespace kintsugi::lab
