// bf16: one product of operands rounded to bfloat16; the baseline without emulation.
//
//   a0 = bf16(a), b0 = bf16(b)                     round to nearest even, no scaling
//   C  = a0 b0                                     one accumulator, all of k inside the engine
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule bf16_split = nearest_split(core::bf16, 1);

inline constexpr Scheme bf16{
    .name = "bf16",
    .summary = "single bf16 product, the baseline",
    .operands = OperandType::f32,
    .program = {bf16_split, bf16_split, make_schedule(single_product)},
    .bound =
        "2 * 2^-8 |A||B| + accumulation inside the engine over all k; 2^-134 absolute per element below "
        "2^-126",
    .window = "2^-126 <= |x| < 2^127; the largest numbers round to infinity",
    .source = "baseline of every paper",
};

}  // namespace kintsugi::core::schemes
