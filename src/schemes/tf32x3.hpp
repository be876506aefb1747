// tf32x3: three TF32 products, small terms first, as CUTLASS's 3xTF32.
//
//   a0 = RN_tf32(a), a1 = RN_tf32(a - a0)          residual unscaled: tf32 has fp32's exponents
//   C  = a1 b0 + a0 b1 + a0 b0                     one accumulator inside the engine, alternating every 8
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule tf32x3_split = nearest_split(core::tf32, 2);

inline constexpr Structure<3> tf32x3_structure{
    .terms = {Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = 0,
    .k_step = 8,
};

inline constexpr Scheme tf32x3{
    .name = "tf32x3",
    .summary = "two tf32 slices, three products, all sums inside the engine",
    .operands = OperandType::f32,
    .program = {tf32x3_split, tf32x3_split, make_schedule(tf32x3_structure)},
    .bound = "2^-21 |A||B| + accumulation inside the engine, growing linearly with k",
    .window = "2^-114 <= |x| < 2^127; the largest numbers round to infinity",
    .source = "CUTLASS 3xTF32",
};

}  // namespace kintsugi::core::schemes
