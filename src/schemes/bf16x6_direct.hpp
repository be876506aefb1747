// bf16x6-direct: three bf16 slices of unscaled elements, six products, FP32 sums of 16 inner indices outside
// the engine. docs/schemes/bf16x6-direct.md defines every step.
//
//   a0 = RNbf16(a), a1 = RNbf16(a - a0), a2 = RNbf16(a - a0 - a1)          likewise b
//   for every step of 16 inner indices:
//     acc = a2 b0 + a1 b1 + a0 b2 + a1 b0 + a0 b1 + a0 b0, one after the other;  sum = sum + acc
//   sums of 128, 512, 16,384 and 524,288 inner indices are added in order
//
// Kernels split operands while they multiply.
#pragma once

#include "arith/direct_arithmetic.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

constexpr SplitRule direct_split() {
  SplitRule rule = nearest_split(core::bf16, 3);
  rule.kind = SplitKind::direct_residuals;
  return rule;
}

inline constexpr Structure<6> bf16x6_direct_structure{
    .terms = {Term{.a = 2, .b = 0}, Term{.a = 1, .b = 1}, Term{.a = 0, .b = 2}, Term{.a = 1, .b = 0},
              Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0}},
    .slices_a = 3,
    .slices_b = 3,
    .groups = 1,
    .k_block = direct_step,
    .k_step = 0,
    .k_segment = direct_segment,
    .is_direct = true,
};

inline constexpr Scheme bf16x6_direct{
    .name = "bf16x6-direct",
    .summary =
        "three bf16 slices of unscaled elements, six products; operands are split while they are multiplied",
    .operands = OperandType::f32,
    .program = {direct_split(), direct_split(), make_schedule(bf16x6_direct_structure),
                Recombination::direct_sums},
    .bound =
        "(k + 8) 2^-24 |A||B|; sums that overflow or are tiny beside large elements are computed in FP32",
    .window = "none: slices keep all bits down to 2^-133",
    .source = "ours; APE has the six products, LE-GEMM and H2SGEMM convert operands inside the product",
};

}  // namespace kintsugi::core::schemes
