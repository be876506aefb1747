// int8x6: three int8 digits of a grid of 23 bits for each row and column, 6 products, exact sums.
//
//   a' = 2^s_i a  with max_p |a'_ip| < 127                 likewise the columns of B
//   round(2^16 a') = 2^16 a0 + 2^8 a1 + a2                 a1, a2 in -128...127
//   S0 = a0 b0,  S1 = a0 b1 + a1 b0,  S2 = a0 b2 + a1 b1 + a2 b0      int32, in 64 bits after 2^15 indices
//   C  = 2^-(s_i + t_j) (S0 + 2^-8 S1 + 2^-16 S2)          exact, then rounded
//
// The error has two parts: the rounding to the grid, relative to the largest magnitude of each row and
// column, and the three products that are left out. The scheme suits narrow dynamic ranges. An int32 holds
// 131,071 products (-128)(-128); the three terms of S2 add 3 * 2^15 = 98,304 of them per block.
#pragma once

#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr Structure<6> int8x6_structure{
    .terms = {Term{.a = 0, .b = 2, .group = 2}, Term{.a = 1, .b = 1, .group = 2},
              Term{.a = 2, .b = 0, .group = 2}, Term{.a = 0, .b = 1, .group = 1},
              Term{.a = 1, .b = 0, .group = 1}, Term{.a = 0, .b = 0}},
    .slices_a = 3,
    .slices_b = 3,
    .groups = 3,
    .k_block = 32768,
    .k_step = 0,
};

inline constexpr Scheme int8x6{
    .name = "int8x6",
    .summary = "three int8 digits of a grid a row and column, 6 products, exact integer sums",
    .operands = OperandType::f32,
    .program = {grid_split(core::int8, 3), grid_split(core::int8, 3),
                make_schedule(int8x6_structure, 0, {0, -8, -16})},
    .bound =
        "2^-17 (u_i ||b_j||_1 + v_j ||a_i||_1) + (2^-9 + 2^-18) k u_i v_j, 63.5 u_i <= max |a_ip| < 127 u_i, "
        "v_j likewise",
    .window = "none: the error is relative to the largest magnitude of each row and column",
    .source =
        "Ozaki, Ogita, Oishi and Rump (2012) on int8 units, as Ootomo, Ozaki and Yokota, DGEMM on Integer "
        "Matrix Multiplication Unit (2024), for FP32",
};

}  // namespace kintsugi::core::schemes
