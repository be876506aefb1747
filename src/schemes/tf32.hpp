// tf32: one product of operands rounded to TensorFloat-32; the baseline without emulation.
//
//   a0 = tf32(a), b0 = tf32(b)                     round to nearest even, no scaling
//   C  = a0 b0                                     one accumulator, all of k inside the engine
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule tf32_split = nearest_split(core::tf32, 1);

inline constexpr Scheme tf32{
    .name = "tf32",
    .summary = "single tf32 product, the baseline",
    .operands = OperandType::f32,
    .program = {tf32_split, tf32_split, make_schedule(single_product)},
    .bound =
        "2 * 2^-11 |A||B| + accumulation inside the engine over all k; 2^-137 absolute per element below "
        "2^-126",
    .window = "2^-126 <= |x| < 2^127; the largest numbers round to infinity",
    .source = "baseline of every paper",
};

}  // namespace kintsugi::core::schemes
