// fp16x3-block: two fp16 slices with an exponent for each vector and k-block, three products, FP32 sums of
// half blocks outside the engine. docs/schemes/fp16x3-block.md defines every step.
//
//   for every block of 64 inner indices, row i of A (columns of B likewise):
//     a' = 2^(14 - e) a with e the exponent of the block's largest element
//     a0 = RN16(a'), a1 = RN16((a' - a0) 2^12)
//     acc = a1 b0 + a0 b1;  acc = 2^-12 acc;  acc = acc + a0 b0 of the first 32;  sum = fma(acc, w, sum)
//     acc = a0 b0 of the last 32;                                                 sum = fma(acc, w, sum)
//   sums of 256, 1024 and 8192 inner indices are added in order
//
// An element is accepted by what its own row and column lose at most; others are computed in FP32.
#pragma once

#include "arith/block_arithmetic.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

constexpr SplitRule block_split() {
  SplitRule rule = nearest_split(core::fp16, 2, block_residual_exponent);
  rule.kind = SplitKind::block_residuals;
  rule.top_exponent = block_top_exponent;
  rule.tile_vectors = 1;
  rule.tile_depth = block_depth;
  return rule;
}

inline constexpr Structure<3> fp16x3_block_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0, .rescales = true}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = block_depth,
    .k_step = 0,
    .k_segment = block_segment,
    .exponents_per_block = true,
};

inline constexpr Scheme fp16x3_block{
    .name = "fp16x3-block",
    .summary = "two fp16 slices with exponents per vector and block of 64, three products, tests of elements",
    .operands = OperandType::f32,
    .program = {block_split(), block_split(), make_schedule(fp16x3_block_structure, -block_residual_exponent),
                Recombination::block_sums},
    .bound =
        "(k + 8) 2^-24 |A||B|, of each element by its own row and column; what is not proved is "
        "computed in FP32",
    .window = "none: elements of wide blocks are accepted by their sums, or computed in FP32",
    .source = "ours; LE-GEMM and H2SGEMM convert operands inside the product, too",
};

}  // namespace kintsugi::core::schemes
