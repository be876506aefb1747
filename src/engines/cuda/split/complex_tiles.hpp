// Tiles of the kernels that split complex operands.
#pragma once

#include "engines/cuda/split/split_task.hpp"

namespace kintsugi::core::cuda {

// Vectors of a tile, and elements of each of them. A warp writes runs of 256 bytes.
inline constexpr std::int64_t complex_tile_vectors = 8;
inline constexpr std::int64_t complex_tile_length = 256;
// In shared memory each group of eight elements, and each vector that is contiguous, is followed by padding
// of one element.
inline constexpr std::int64_t complex_tile_pitch = complex_tile_length / 8 * 9 + 1;
inline constexpr std::int64_t complex_tile_elements = complex_tile_vectors * complex_tile_pitch;

inline constexpr std::int64_t complex_tiles_blocks = 3;  // thread blocks per SM

// Bytes of shared memory of a thread block, which has two tiles.
constexpr std::int64_t complex_tiles_bytes(std::int64_t element_bytes) {
  return 2 * complex_tile_elements * element_bytes;
}

}  // namespace kintsugi::core::cuda
