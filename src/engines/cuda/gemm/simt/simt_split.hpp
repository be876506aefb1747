// Native FP32 products of small matrices: the thread blocks of a cluster divide the inner indices among them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/view.hpp"
#include "engines/cuda/gemm/simt/simt_tiles.hpp"

namespace kintsugi::core::cuda {

inline constexpr std::size_t simt_split_tile = 1;  // index in simt_tiles_f32 of the tile
inline constexpr int simt_split_blocks = 7;        // most thread blocks per cluster; 8 leave SMs idle (H100)

// Number of inner indices of each of `blocks` thread blocks, except the last one. It is a multiple of whole
// steps, since single inner indices take several times as long.
constexpr std::int64_t split_length(std::int64_t k, std::int64_t blocks) {
  return round_up(divide_up(k, blocks),
                  std::int64_t{simt_depth<float>(simt_tiles_f32[simt_split_tile].side)});
}

}  // namespace kintsugi::core::cuda
