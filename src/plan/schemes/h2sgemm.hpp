// h2sgemm: tunable residual scaling, three products, term-wise sums.
//
//   a0 = RN16(a), a1 = RN16((a - a0) 2^12)         2^sb with sb = 12, the paper's default
//   S1 = a1 b0, S2 = a0 b1, S3 = a0 b0             each over all of k, an accumulator of its own
//   C  = 2^-12 S1 + 2^-12 S2 + S3                  small terms first
//
// sb = 12 overflows the residual of |x| >= 2^15 where it exceeds 15.99 (x = 32784: a1 = 65536), which
// Eq. 6 does not see; the window ends there.
#pragma once

#include "formats/fp16.hpp"
#include "plan/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule h2sgemm_split = nearest_split(core::fp16, 2, 12);

inline constexpr Structure<3> h2sgemm_structure{
    .terms = {Term{1, 0, 0}, Term{0, 1, 1}, Term{0, 0, 2}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 3,
    .k_block = 0,
    .k_step = 0,
};

inline constexpr Scheme h2sgemm{
    .name = "h2sgemm",
    .summary = "two fp16 slices, residual scaled by 2^12, three products summed matrix by matrix",
    .operands = OperandType::f32,
    .program = {h2sgemm_split, h2sgemm_split, make_schedule(h2sgemm_structure, 0, {-12, -12, 0})},
    .bound = "2^-21 |A||B| + accumulation inside the engine over all of k",
    .window = "2^-14 <= |x| < 2^15; residuals overflow from there on",
    .source = "h2sgemm sections 3.1 and 3.2, Eq. 7, Fig. 7(b)",
};

}  // namespace kintsugi::core::schemes
