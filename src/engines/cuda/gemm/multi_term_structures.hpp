// Structures that have multi-term GEMM kernels.
#pragma once

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

}  // namespace kintsugi::core::cuda
