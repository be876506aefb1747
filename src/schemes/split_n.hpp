// split-n: n_A and n_B slices by successive residuals, any subset of their products, each summed on its own.
//
//   a0 = RN(a), a1 = RN((a - a0) 2^S), a2 = RN(residual 2^S), ...  a residual that is zero gives zero slices
//   [a_s b_t]  each product in its own accumulator, over all of k or added outside every `block` indices
//   C = sum of 2^-S(s + t) [a_s b_t]                               cast to the target's precision, then added
//
// Operands are FP32 or FP64; for both, the sum of every product is in fp32.
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr Structure<4> split_n_structure{
    .terms = {Term{.a = 0, .b = 0}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 1, .b = 0, .group = 2},
              Term{.a = 1, .b = 1, .group = 3}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 4,
    .k_block = 0,
    .k_step = 0,
};

// Defined in schemes/split_n.cpp.
const Parameter* configure_split_n(Program& program, std::span<const Parameter> parameters);
void adapt_split_n(Program& program, const RangeSummary& a, const RangeSummary& b, std::int64_t k);

inline constexpr Scheme split_n{
    .name = "split-n",
    .summary = "any number of slices by successive residuals, any of their products, each summed on its own",
    .operands = {OperandType::f32, OperandType::f64},
    .program = {nearest_split(core::fp16, 2), nearest_split(core::fp16, 2), make_schedule(split_n_structure)},
    .bound =
        "(2^(1 - n_A (p + 1)) + 2^(1 - n_B (p + 1)) + the products left out + accumulation of each product) "
        "|A||B|, p significant bits a slice",
    .window = "elements whose last slice is not subnormal; an error where a slice or a sum may overflow",
    .source = "fp16-emulation-study, Ozaki's scheme",
    .parameters =
        "format=fp16|bf16|tf32|fp32|fp8_e4m3|fp8_e5m2, a=1...8, b=1...8 (slices), terms=N (products, those "
        "of least s + t first) or a list such as a0b0+a0b1+a1b0, scale=0...40 (residuals times 2^scale), "
        "block=0...65536 (inner indices after which sums are added outside the engine; 0: never)",
    .configure = configure_split_n,
    .adapt = adapt_split_n,
};

}  // namespace kintsugi::core::schemes
