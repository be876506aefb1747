// Structures that have multi-term GEMM kernels, and the kernels' tiles.
#pragma once

#include <array>

#include "engines/cuda/gemm/kernel_params.hpp"
#include "schedule/schedule.hpp"

namespace kintsugi::core::cuda {

// All terms of each structure share accumulator group 0.
inline constexpr Structure<3> fp16x3_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = term_block,
    .k_step = 0,
    .k_segment = term_segment,
    .most_halvings = 2};
inline constexpr Structure<3> fp16x3_wide_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0, .rescales = true}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = term_block,
    .k_step = 0,
    .k_segment = term_segment,
    .most_halvings = 2};
inline constexpr Structure<6> bf16x6_structure{
    .terms = {Term{.a = 0, .b = 2}, Term{.a = 1, .b = 1}, Term{.a = 2, .b = 0},
              Term{.a = 0, .b = 1, .rescales = true}, Term{.a = 1, .b = 0},
              Term{.a = 0, .b = 0, .rescales = true}},
    .slices_a = 3,
    .slices_b = 3,
    .groups = 1,
    .k_block = term_block,
    .k_step = 0,
    .k_segment = term_segment,
    .most_halvings = 1};

// Tiles of fp16x3 (joined_tiles), of fp16x3-wide (rescaled_tiles) and of bf16x6 (six_term_tiles). Profiles
// have the tiles' costs under these names. fp16x3 adds all terms to the same sums without rescaling.
//
// Stages of low slices are freed earlier than those of high slices, so low slices have fewer stages. The
// matrix unit is idle for longer where sums are rescaled. Reading A's high slice from registers wins some of
// that time back (n = 8192: 206 TFLOP/s instead of 199). Without rescaling, registers do not suffice for the
// high slice, and there is no idle time to win back. Narrower tiles gain nothing, and small tiles lose a
// twentieth.
inline constexpr std::array joined_tiles{
    MultiTermTile{.columns = 192, .stages = {3, 2, 0}, .high_in_registers = false},
    MultiTermTile{.columns = 128, .stages = {4, 3, 0}, .high_in_registers = false},
    MultiTermTile{.columns = 64, .stages = {5, 4, 0}, .high_in_registers = false}};
inline constexpr std::array rescaled_tiles{
    MultiTermTile{.columns = 192, .stages = {3, 2, 0}, .high_in_registers = true},
    MultiTermTile{.columns = 128, .stages = {4, 3, 0}, .high_in_registers = false},
    MultiTermTile{.columns = 64, .stages = {5, 4, 0}, .high_in_registers = false}};
inline constexpr std::array six_term_tiles{
    MultiTermTile{.columns = 128, .stages = {3, 2, 2}, .high_in_registers = false},
    MultiTermTile{.columns = 64, .stages = {4, 3, 2}, .high_in_registers = false}};

// Small tiles of two fp16 slices.
inline constexpr std::array small_tiles{SmallTile{.columns = 32}, SmallTile{.columns = 64},
                                        SmallTile{.columns = 128}};

}  // namespace kintsugi::core::cuda
