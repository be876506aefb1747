// ootomo: scaled residuals, and every instruction's sum added outside the tensor core.
//
//   a0 = RN16(a), a1 = RN16((a - a0) 2^11)
//   for every 16 inner indices (one instruction):
//     main  = main  + [a0 b0]                      fp32 to nearest, outside the engine
//     cross = cross + [a1 b0 + a0 b1]
//   C = main + 2^-11 cross
//
// [...] is summed inside the tensor core.
//
// The authors' kernels add only the main sum outside; the cross terms, 2^-11 of it, stay inside.
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule ootomo_split = nearest_split(core::fp16, 2, 11);

// Structure for instructions of `instruction_k` products, whose sums are added outside the engine.
constexpr Structure<3> ootomo_structure(std::int32_t instruction_k) {
  return {.terms = {Term{.a = 1, .b = 0, .group = 1}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 0, .b = 0}},
          .slices_a = 2,
          .slices_b = 2,
          .groups = 2,
          .k_block = instruction_k,
          .k_step = 0};
}

inline constexpr Structure<3> ootomo_fp16_structure = ootomo_structure(16);

inline constexpr Scheme ootomo{
    .name = "ootomo",
    .summary = "two fp16 slices, residual scaled by 2^11, three products, sums outside the engine",
    .operands = OperandType::f32,
    .program = {ootomo_split, ootomo_split, make_schedule(ootomo_fp16_structure, 0, {0, -11})},
    .bound = "(2^-21 + accumulation of 16 products inside and of k / 16 sums outside) |A||B|",
    .window = "2^-13 <= |x| < 2^15; from 65520 on elements become infinity",
    .source =
        "Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022); "
        "fp16-emulation-study",
};

// ootomo-tf32: scaled residuals, and every instruction's sum added outside the tensor core.
//
//   a0 = RN_tf32(a), a1 = RN_tf32((a - a0) 2^11)
//   for every 8 inner indices (one instruction):
//     main  = main  + [a0 b0]                      fp32 to nearest, outside the engine
//     cross = cross + [a1 b0 + a0 b1]
//   C = main + 2^-11 cross
//
// [...] is summed inside the tensor core.

inline constexpr SplitRule ootomo_tf32_split = nearest_split(core::tf32, 2, 11);

inline constexpr Structure<3> ootomo_tf32_structure = ootomo_structure(8);

inline constexpr Scheme ootomo_tf32{
    .name = "ootomo-tf32",
    .summary = "two tf32 slices, residual scaled by 2^11, three products, sums outside the engine",
    .operands = OperandType::f32,
    .program = {ootomo_tf32_split, ootomo_tf32_split, make_schedule(ootomo_tf32_structure, 0, {0, -11})},
    .bound = "(2^-21 + accumulation of 8 products inside and of k / 8 sums outside) |A||B|",
    .window = "2^-125 <= |x| < 2^127",
    .source =
        "Ootomo and Yokota, Recovering single precision accuracy from Tensor Cores (2022); "
        "fp16-emulation-study",
};

}  // namespace kintsugi::core::schemes
