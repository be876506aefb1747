// fp16: one product of operands rounded to half precision; the baseline without emulation.
//
//   a0 = fp16(a), b0 = fp16(b)                     round to nearest even, no scaling
//   C  = a0 b0                                     one accumulator, all of k inside the engine
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule fp16_split = nearest_split(core::fp16, 1);

inline constexpr Scheme fp16{
    .name = "fp16",
    .summary = "single fp16 product, the baseline",
    .operands = OperandType::f32,
    .program = {fp16_split, fp16_split, make_schedule(single_product)},
    .bound =
        "2 * 2^-11 |A||B| + accumulation inside the engine over all k; 2^-25 absolute per element below "
        "2^-14",
    .window = "2^-14 <= |x| < 2^15; from 65520 on elements become infinity",
    .source = "baseline of every paper",
};

// bf16: one product of operands rounded to bfloat16; the baseline without emulation.
//
//   a0 = bf16(a), b0 = bf16(b)                     round to nearest even, no scaling
//   C  = a0 b0                                     one accumulator, all of k inside the engine

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

// tf32: one product of operands rounded to TensorFloat-32; the baseline without emulation.
//
//   a0 = tf32(a), b0 = tf32(b)                     round to nearest even, no scaling
//   C  = a0 b0                                     one accumulator, all of k inside the engine

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
