// Tiles of the GEMM kernels that multiply by mma.sync (gemm/sm80).
#pragma once

#include <array>

#include "engines/cuda/gemm/mma_params.hpp"

namespace kintsugi::core::cuda::sm80 {

// A warp has accumulators and sums of 64 x 32 elements: with more, registers do not suffice for fragments.
// Rates are those of fp16x3 at n = 4096 on an H200.
inline constexpr std::array multi_term_tiles{
    MmaTile{.rows = 128, .columns = 128, .warp_rows = 64, .warp_columns = 32, .rate = 1},
    MmaTile{.rows = 128, .columns = 64, .warp_rows = 64, .warp_columns = 32, .rate = 0.92},
    MmaTile{.rows = 64, .columns = 64, .warp_rows = 32, .warp_columns = 32, .rate = 0.8}};

// Tiles of structures for whose larger tiles registers do not suffice.
inline constexpr std::array small_tiles{multi_term_tiles[2]};

}  // namespace kintsugi::core::cuda::sm80
