// Tiles of the GEMM kernels for Hopper (gemm/hopper).
#pragma once

#include <array>

#include "engines/cuda/gemm/dmma_tiles.hpp"
#include "engines/cuda/gemm/kernel_params.hpp"

namespace kintsugi::core::cuda::hopper {

// Tiles of the multi-term GEMM kernels.
//
// Stages of low slices are freed earlier than those of high slices, so low slices have fewer stages. The
// matrix unit is idle for longer where sums are rescaled. Reading A's high slice from registers wins some of
// that time back (n = 8192: 206 TFLOP/s instead of 199). Without rescaling, registers do not suffice for the
// high slice, and there is no idle time to win back. Narrower tiles gain nothing, and small tiles lose a
// twentieth.
inline constexpr std::array fp16x3_tiles{
    MultiTermTile{.columns = 192, .stages = {3, 2, 0}, .high_in_registers = false},
    MultiTermTile{.columns = 128, .stages = {4, 3, 0}, .high_in_registers = false},
    MultiTermTile{.columns = 64, .stages = {5, 4, 0}, .high_in_registers = false}};
inline constexpr std::array fp16x3_wide_tiles{
    MultiTermTile{.columns = 192, .stages = {3, 2, 0}, .high_in_registers = true},
    MultiTermTile{.columns = 128, .stages = {4, 3, 0}, .high_in_registers = false}};
inline constexpr std::array bf16x6_tiles{
    MultiTermTile{.columns = 128, .stages = {3, 2, 2}, .high_in_registers = false},
    MultiTermTile{.columns = 64, .stages = {4, 3, 2}, .high_in_registers = false}};

// Small tiles of two fp16 slices. Segments of k are computed in parallel by the first two: tiles of 128
// columns would gain at most a ninth, in one of fifty shapes (2026-11-29).
inline constexpr std::array small_tiles{SmallTile{.columns = 32}, SmallTile{.columns = 64},
                                        SmallTile{.columns = 128}};

// Tiles of FP64 products on tensor cores. The largest real tile is selected for long products alone
// (dmma_gemm.cpp).
inline constexpr std::array dmma_tiles_f64{DmmaTile{.config = {.rows = 128,
                                                               .columns = 128,
                                                               .warp_rows = 64,
                                                               .warp_columns = 32,
                                                               .stages = 6,
                                                               .k_tiles = 1,
                                                               .consumer_registers = 232},
                                                    .blocks_per_sm = 1},
                                           DmmaTile{.config = {.rows = 64,
                                                               .columns = 64,
                                                               .warp_rows = 32,
                                                               .warp_columns = 32,
                                                               .stages = 6,
                                                               .k_tiles = 1,
                                                               .consumer_registers = 200},
                                                    .blocks_per_sm = 2},
                                           DmmaTile{.config = {.rows = 32,
                                                               .columns = 32,
                                                               .warp_rows = 16,
                                                               .warp_columns = 16,
                                                               .stages = 4,
                                                               .k_tiles = 2,
                                                               .consumer_registers = 0},
                                                    .blocks_per_sm = 2}};
inline constexpr std::array dmma_tiles_c64{DmmaTile{.config = {.rows = 128,
                                                               .columns = 64,
                                                               .warp_rows = 32,
                                                               .warp_columns = 32,
                                                               .stages = 8,
                                                               .k_tiles = 1,
                                                               .consumer_registers = 232},
                                                    .blocks_per_sm = 1},
                                           DmmaTile{.config = {.rows = 64,
                                                               .columns = 32,
                                                               .warp_rows = 32,
                                                               .warp_columns = 16,
                                                               .stages = 6,
                                                               .k_tiles = 1,
                                                               .consumer_registers = 200},
                                                    .blocks_per_sm = 2},
                                           DmmaTile{.config = {.rows = 32,
                                                               .columns = 32,
                                                               .warp_rows = 16,
                                                               .warp_columns = 16,
                                                               .stages = 4,
                                                               .k_tiles = 2,
                                                               .consumer_registers = 0},
                                                    .blocks_per_sm = 2}};

}  // namespace kintsugi::core::cuda::hopper
