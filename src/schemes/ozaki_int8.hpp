// ozaki-int8: N int8 digits of a grid for each row and column, products of equal weight in one accumulator,
// exact sums.
//
//   a' = 2^s_i a  with max_p |a'_ip| < 127                 likewise the columns of B
//   RN(2^(8 (N - 1)) a') = sum over s of 2^(8 (N - 1 - s)) a_s         -128 <= a_s <= 127
//   S_g = sum over s + t = g of a_s b_t,  g < N             int32, added up in 64 bits every 2^13: 8 products
//                                                           of magnitude 2^14 are 2^17 per inner index
//   C   = 2^-(s_i + t_j) sum over g of 2^(-8 g) S_g         exact, then rounded to double and to C
//
// N = 3 for FP32 is int8x6. Products with s + t >= N are left out, since they are no larger than the loss of
// the grid.
#pragma once

#include <array>

#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr int ozaki_int8_min_slices = 2;
inline constexpr int ozaki_int8_max_slices = 8;  // keeps weights within 128 bits (recombine/weighted.cpp)
inline constexpr int ozaki_int8_default_slices = 7;

template <int Slices>
inline constexpr auto ozaki_int8_structure = [] {
  Structure<Slices*(Slices + 1) / 2> structure{
      .terms = {}, .slices_a = Slices, .slices_b = Slices, .groups = Slices, .k_block = 8192, .k_step = 0};
  int count = 0;
  for (int sum = 0; sum < Slices; ++sum) {
    for (int s = 0; s <= sum; ++s) {
      structure.terms[count++] = {.a = static_cast<std::int16_t>(s),
                                  .b = static_cast<std::int16_t>(sum - s),
                                  .group = static_cast<std::int16_t>(sum)};
    }
  }
  return structure;
}();

template <int Slices>
constexpr Program ozaki_int8_program() {
  const SplitRule split = grid_split(core::int8, Slices);
  std::array<int, max_groups> exponents{};
  for (int g = 0; g < Slices; ++g) exponents[g] = -g * split.residual_exponent;
  return {split, split, make_schedule(ozaki_int8_structure<Slices>, 0, exponents)};
}

inline constexpr std::array<Program, ozaki_int8_max_slices - ozaki_int8_min_slices + 1> ozaki_int8_programs{
    ozaki_int8_program<2>(), ozaki_int8_program<3>(), ozaki_int8_program<4>(), ozaki_int8_program<5>(),
    ozaki_int8_program<6>(), ozaki_int8_program<7>(), ozaki_int8_program<8>()};

// Sets the parameters. Returns the first one that the scheme refuses; nullptr if there is none.
inline const Parameter* configure_ozaki_int8(Program& program, std::span<const Parameter> parameters) {
  for (const Parameter& parameter : parameters) {
    const auto slices = parse_parameter(parameter.value, ozaki_int8_min_slices, ozaki_int8_max_slices);
    if (parameter.key != "slices" || !slices) return &parameter;
    program = ozaki_int8_programs[static_cast<std::size_t>(*slices - ozaki_int8_min_slices)];
  }
  return nullptr;
}

inline constexpr Scheme ozaki_int8{
    .name = "ozaki-int8",
    .summary = "N int8 digits of a grid a row and column, N (N + 1) / 2 products, exact integer sums",
    .operands = {OperandType::f32, OperandType::f64},
    .program = ozaki_int8_program<ozaki_int8_default_slices>(),
    .bound =
        "2^(7 - 8 N) (u_i ||b_j||_1 + v_j ||a_i||_1) + (N - 1) 2^(14 - 8 N) (1 + 2^-6) k u_i v_j, 63.5 "
        "u_i <= max |a_ip| < 127 u_i, v_j likewise",
    .window = "none: the error is relative to the largest magnitude of each row and column",
    .source =
        "Ozaki, Ogita, Oishi and Rump (2012) on int8 units, as Ootomo, Ozaki and Yokota, DGEMM on Integer "
        "Matrix Multiplication Unit (2024); sums of equal weight and nearest digits as Uchino, Ozaki and "
        "Imamura (2025)",
    .parameters = "slices=2...8",
    .configure = configure_ozaki_int8,
};

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
