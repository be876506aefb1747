// Emulations of FP32 by slices of scaled rows and columns, with sums of blocks added outside the engine:
// fp16x3, fp16x3-wide, bf16x3, bf16x6 and bf16x9. These are the project's own schemes.
#pragma once

#include <string_view>

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

// fp16x3: two fp16 slices of scaled vectors, three products, blocks of 64 summed outside the engine.
//
//   a' = 2^s_i a  with max_p |a'_ip| in [2^14, 2^15)      likewise the columns of B
//   a0 = RN16(a'), a1 = RN16(a' - a0)                     residual unscaled
//   for every block of 64 inner indices (32 if k <= 128 or C has fewer than 2^22 elements, and 16 if C has
//   fewer than 2^20 elements; see Schedule::shortened()):
//     acc = a1 b0 + a0 b1 + a0 b0                         small terms first, one accumulator
//     sum = sum + acc                                     fp32, outside the engine; a new sum for every
//                                                         segment of at most 8192 indices, added in order
//   C = 2^-(s_i + t_j) sum

inline constexpr SplitRule fp16x3_split = scaled_split(core::fp16, {.slices = 2, .top_exponent = 14});

inline constexpr Structure<3> fp16x3_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = 64,
    .k_step = 0,
    .k_segment = 8192,
    .most_halvings = 2,
};

inline constexpr Scheme fp16x3{
    .name = "fp16x3",
    .summary = "two fp16 slices of scaled rows and columns, three products, blocks of 64 summed outside",
    .operands = OperandType::f32,
    .program = {fp16x3_split, fp16x3_split, make_schedule(fp16x3_structure)},
    .bound =
        "(2^-21 + accumulation over blocks of 64, 32 or 16) |A||B|, which is at most (k + 8) 2^-24 |A||B| "
        "from k = 5 up on units that add 16 products at once; "
        "below the window, each element adds at most 2^-39 of its vector's maximum",
    .window = "every row of A and column of B spans at most 16 binades",
    .source = "ours; the structure of Ootomo and Yokota (2022) with scaled vectors and one accumulator",
    .parameters = block_parameter,
    .configure = configure_block,
};

// fp16x3-wide: fp16x3 with residuals multiplied by 2^12, for vectors of wider dynamic range.
//
//   a' = 2^s_i a  with max_p |a'_ip| in [2^14, 2^15)      likewise the columns of B
//   a0 = RN16(a'), a1 = RN16((a' - a0) 2^12)              |a' - a0| <= 8: 2^12 cannot overflow
//   for every block of 64 inner indices (32 or 16 as in fp16x3):
//     acc = a1 b0 + a0 b1;  acc = 2^-12 acc;  acc = acc + a0 b0
//     sum = sum + acc                                     fp32, outside the engine; a new sum for every
//                                                         segment of at most 8192 indices, added in order
//   C = 2^-(s_i + t_j) sum

inline constexpr SplitRule fp16x3_wide_split =
    scaled_split(core::fp16, {.slices = 2, .residual_exponent = 12, .top_exponent = 14});

inline constexpr Structure<3> fp16x3_wide_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0, .rescales = true}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = 64,
    .k_step = 0,
    .k_segment = 8192,
    .most_halvings = 2,
};

inline constexpr Scheme fp16x3_wide{
    .name = "fp16x3-wide",
    .summary = "fp16x3 with residuals scaled by 2^12, for rows and columns of wide range",
    .operands = OperandType::f32,
    .program = {fp16x3_wide_split, fp16x3_wide_split, make_schedule(fp16x3_wide_structure, -12)},
    .bound =
        "(2^-21 + accumulation over blocks of 64, 32 or 16) |A||B|, which is at most (k + 8) 2^-24 |A||B| "
        "from k = 5 up on units that add 16 products at once; "
        "below the window, each element adds at most 2^-51 of its vector's maximum",
    .window = "every row of A and column of B spans at most 28 binades",
    .source = "ours; h2sgemm section 3.1 (residuals scaled by 2^12) on scaled vectors",
    .parameters = block_parameter,
    .configure = configure_block,
};

// bf16x3: two bf16 slices of scaled vectors, 3 products, small terms first.
//
//   a' = 2^s_i a  with max_p |a'_ip| in [2^40, 2^41)      likewise the columns of B
//   a0 = RNbf16(a'), a_s = RNbf16((a' - a0 - ...) 2^(8 s))  slice s is stored scaled by 2^(8 s)
//   for every block of 64 inner indices:
//     acc = a1 b0 + a0 b1
//     acc = 2^-8 acc + a0 b0
//     sum = sum + acc                                     fp32, outside the engine
//   C = 2^-(s_i + t_j) sum
//
// Because of the scaling, FLT_MAX does not round up to infinity, and subnormal elements keep their bits. With
// maxima of 2^40, sums of 2^40 products do not overflow fp32, and rows of about 100 binades do not underflow.

inline constexpr std::string_view bf16_window =
    "every row of A and column of B spans at most about 100 binades, by k: beyond, products underflow in fp32";
inline constexpr std::string_view bf16_source =
    "APE (bf16 slices); BF16x9 of cuBLAS; the structure with scaled vectors and blocks is ours";

inline constexpr SplitRule bf16x3_split =
    scaled_split(core::bf16, {.slices = 2, .residual_exponent = 8, .top_exponent = 40});

inline constexpr Structure<3> bf16x3_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0, .rescales = true}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = 64,
    .k_step = 0,
};

inline constexpr Scheme bf16x3{
    .name = "bf16x3",
    .summary = "two bf16 slices of scaled rows and columns, 3 products, blocks of 64 summed outside",
    .operands = OperandType::f32,
    .program = {bf16x3_split, bf16x3_split, make_schedule(bf16x3_structure, -8)},
    .bound = "(2^-15 + accumulation over blocks of 64) |A||B|",
    .window = bf16_window,
    .source = bf16_source,
};

// bf16x6: three bf16 slices of vectors scaled as in bf16x3, 6 products, small terms first.
//
//   for every block of 64 inner indices (32 if k <= 128 or C has fewer than 2^22 elements):
//     acc = a0 b2 + a1 b1 + a2 b0
//     acc = 2^-8 acc + a0 b1 + a1 b0
//     acc = 2^-8 acc + a0 b0
//     sum = sum + acc                                     fp32, outside the engine; a new sum for every
//                                                         segment of at most 8192 indices, added in order
//   C = 2^-(s_i + t_j) sum

inline constexpr SplitRule bf16x6_split =
    scaled_split(core::bf16, {.slices = 3, .residual_exponent = 8, .top_exponent = 40});

inline constexpr Structure<6> bf16x6_structure{
    .terms = {Term{.a = 0, .b = 2}, Term{.a = 1, .b = 1}, Term{.a = 2, .b = 0},
              Term{.a = 0, .b = 1, .rescales = true}, Term{.a = 1, .b = 0},
              Term{.a = 0, .b = 0, .rescales = true}},
    .slices_a = 3,
    .slices_b = 3,
    .groups = 1,
    .k_block = 64,
    .k_step = 0,
    .k_segment = 8192,
    .most_halvings = 1,
};

inline constexpr Scheme bf16x6{
    .name = "bf16x6",
    .summary = "three bf16 slices of scaled rows and columns, 6 products, blocks of 64 summed outside",
    .operands = OperandType::f32,
    .program = {bf16x6_split, bf16x6_split, make_schedule(bf16x6_structure, -8)},
    .bound = "(3 * 2^-25 + accumulation over blocks of 64 or 32) |A||B|",
    .window = bf16_window,
    .source = bf16_source,
    .parameters = block_parameter,
    .configure = configure_block,
};

// bf16x9: three bf16 slices of vectors scaled as in bf16x3, 9 products, small terms first.
//
//   for every block of 64 inner indices:
//     acc = a2 b2
//     acc = 2^-8 acc + a1 b2 + a2 b1
//     acc = 2^-8 acc + a0 b2 + a1 b1 + a2 b0
//     acc = 2^-8 acc + a0 b1 + a1 b0
//     acc = 2^-8 acc + a0 b0
//     sum = sum + acc                                     fp32, outside the engine
//   C = 2^-(s_i + t_j) sum

inline constexpr Structure<9> bf16x9_structure{
    .terms = {Term{.a = 2, .b = 2}, Term{.a = 1, .b = 2, .rescales = true}, Term{.a = 2, .b = 1},
              Term{.a = 0, .b = 2, .rescales = true}, Term{.a = 1, .b = 1}, Term{.a = 2, .b = 0},
              Term{.a = 0, .b = 1, .rescales = true}, Term{.a = 1, .b = 0},
              Term{.a = 0, .b = 0, .rescales = true}},
    .slices_a = 3,
    .slices_b = 3,
    .groups = 1,
    .k_block = 64,
    .k_step = 0,
};

inline constexpr Scheme bf16x9{
    .name = "bf16x9",
    .summary = "three bf16 slices of scaled rows and columns, 9 products, blocks of 64 summed outside",
    .operands = OperandType::f32,
    .program = {bf16x6_split, bf16x6_split, make_schedule(bf16x9_structure, -8)},
    .bound = "(2^-25 + accumulation over blocks of 64) |A||B|",
    .window = bf16_window,
    .source = bf16_source,
};

}  // namespace kintsugi::core::schemes
