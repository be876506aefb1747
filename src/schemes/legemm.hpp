// legemm: bit-cut high part, residual x 2^10 towards zero, two accumulators inside the engine.
//
//   a0 = bit-cut(a), a1 = RZ16((a - a0) 2^10)
//   acc0 = a0 b0;  acc1 = a0 b1 + a1 b0            over all of k, alternating every 16 inner indices
//   C = acc0 + 2^-10 acc1
//
// bit-cut is the paper's word for truncation without gradual underflow: the leading bits are copied. Elements
// below 2^-14 have a0 = 0. Only a1 represents them, with the bits that fp16 keeps of 2^10 a.
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule legemm_split{.format = &core::fp16,
                                        .slices = 2,
                                        .first_rounding = Rounding::bit_cut,
                                        .residual_rounding = Rounding::towards_zero,
                                        .residual_exponent = 10,
                                        .scale_vectors = false,
                                        .top_exponent = 0};

inline constexpr Structure<3> legemm_structure{
    .terms = {Term{.a = 0, .b = 0}, Term{.a = 0, .b = 1, .group = 1}, Term{.a = 1, .b = 0, .group = 1}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 2,
    .k_block = 0,
    .k_step = 16,
};

inline constexpr Scheme legemm{
    .name = "legemm",
    .summary =
        "bit-cut high part, residual scaled by 2^10, three products, two accumulators inside the engine",
    .operands = OperandType::f32,
    .program = {legemm_split, legemm_split, make_schedule(legemm_structure, 0, {0, -10})},
    .bound =
        "(2 * 2^-21 + 2^-20) |A||B| + accumulation inside the engine, growing linearly with k; 2^-25 "
        "absolute per element below 2^-13",
    .window = "2^-13 <= |x| < 2^15; from 65536 on elements become infinity",
    .source = "LE-GEMM, section 4.1, Eqs. 5-11 and Algorithm 1",
};

}  // namespace kintsugi::core::schemes
