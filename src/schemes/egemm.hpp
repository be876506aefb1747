// egemm: as markidis, with rounding to nearest.
//
//   a0 = RN16(a), a1 = RN16(a - a0)                residual unscaled
//   C  = a1 b1 + a1 b0 + a0 b1 + a0 b0             one accumulator, all of k inside the engine
//
// The four terms alternate after every 16 inner indices: the structure is that of markidis.
#pragma once

#include "formats/formats.hpp"
#include "schemes/markidis.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule egemm_split = nearest_split(core::fp16, 2);

inline constexpr Scheme egemm{
    .name = "egemm",
    .summary = "two fp16 slices rounded to nearest, four products, all sums inside the engine",
    .operands = OperandType::f32,
    .program = {egemm_split, egemm_split, make_schedule(markidis_structure)},
    .bound =
        "2 * 2^-23 |A||B| + accumulation inside the engine, growing linearly with k; 2^-25 absolute per "
        "element below 2^-2",
    .window = "2^-2 <= |x| < 2^15; from 65520 on elements become infinity",
    .source = "Feng et al., EGEMM-TC (2021); h2sgemm Table 1",
};

}  // namespace kintsugi::core::schemes
