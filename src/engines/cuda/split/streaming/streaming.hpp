// Constants of the kernel that streams operands with known ranges through shared memory, tile by tile
// (split_streaming_sm90.cu).
#pragma once

#include <cstdint>

#include "engines/device_moduli.hpp"

namespace kintsugi::core::cuda {

inline constexpr std::int64_t streaming_threads = 256;
inline constexpr std::int64_t streaming_blocks = 3;  // thread blocks per SM, as registers and memory allow
inline constexpr std::int64_t streaming_stages = 2;  // tiles per thread block in shared memory
inline constexpr int streaming_moduli = 28;          // most moduli of integers of up to 93 bits

// A tile has 4096 FP64 numbers. If vectors are adjacent, it has 256 elements of each of 16 vectors: a line of
// memory has one element of each of them. If elements are adjacent, each warp has 512 elements in the order
// of the slices, so that they may begin in one vector and end in another.
inline constexpr std::int64_t streaming_vectors = 16;
inline constexpr std::int64_t streaming_length = 256;
inline constexpr std::int64_t streaming_elements = streaming_vectors * streaming_length;
// Elements of padding in shared memory after every eight lines of a tile of adjacent vectors. With it the
// lanes of a warp, which read 32 groups of eight lines of a vector, access half of the banks.
inline constexpr std::int64_t streaming_gap = 2;
inline constexpr std::int64_t streaming_stage_elements =
    streaming_elements + streaming_length / 8 * streaming_gap;
// Least number of elements of a vector in a slice: a warp's part of a tile has at most three vectors.
inline constexpr std::int64_t least_streaming_stride = 256;
// Number of vectors of which slices have a multiple if vectors of padding are not needed. Their elements then
// fill whole tiles, as a vector has a multiple of 64.
inline constexpr std::int64_t streaming_vector_multiple = 64;

// Bytes of dynamic shared memory per thread block.
inline constexpr std::int64_t streaming_shared_bytes = streaming_stages * streaming_stage_elements * 8;

// Number of tiles of an operand whose slices have `vectors` vectors of `stride` elements, both with padding.
constexpr std::int64_t streaming_tiles(bool adjacent_elements, std::int64_t vectors, std::int64_t stride) {
  return adjacent_elements
             ? vectors * stride / streaming_elements
             : vectors / streaming_vectors * ((stride + streaming_length - 1) / streaming_length);
}

// Rules of candidates that share the kernel, which follows that of the selected one. Without a selection it
// follows the task's rule. The i-th rule has selected.least + i moduli.
struct StreamRules {
  static constexpr int max_rules = 5;

  SelectedModuli selected;
  std::int16_t sum_bits[max_rules] = {};  // SplitRule::sum_bits
  std::int16_t top_exponent[max_rules] = {};
};

}  // namespace kintsugi::core::cuda
