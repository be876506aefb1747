// markidis: the first fp16 emulation of FP32 on tensor cores, four products in one accumulator.
//
//   a0 = RZ16(a), a1 = RZ16(a - a0)                truncation, residual unscaled
//   C  = a1 b1 + a1 b0 + a0 b1 + a0 b0             one accumulator, all of k inside the engine
//
// The four terms alternate after every 16 inner indices, as in a kernel that loads a tile of each slice once
// and issues four matrix instructions on it.
#pragma once

#include "formats/formats.hpp"
#include "schemes/program.hpp"

namespace kintsugi::core::schemes {

inline constexpr SplitRule markidis_split{.format = &core::fp16,
                                          .slices = 2,
                                          .first_rounding = Rounding::towards_zero,
                                          .residual_rounding = Rounding::towards_zero,
                                          .residual_exponent = 0,
                                          .scale_vectors = false,
                                          .top_exponent = 0};

inline constexpr Structure<4> markidis_structure{
    .terms = {Term{.a = 1, .b = 1}, Term{.a = 1, .b = 0}, Term{.a = 0, .b = 1}, Term{.a = 0, .b = 0}},
    .slices_a = 2,
    .slices_b = 2,
    .groups = 1,
    .k_block = 0,
    .k_step = 16,
};

inline constexpr Scheme markidis{
    .name = "markidis",
    .summary = "two truncated fp16 slices, four products, all sums inside the engine",
    .operands = OperandType::f32,
    .program = {markidis_split, markidis_split, make_schedule(markidis_structure)},
    .bound =
        "2 * 2^-21 |A||B| + accumulation inside the engine, growing linearly with k; 2^-24 absolute per "
        "element below 2^-3",
    .window = "2^-3 <= |x| < 2^15; larger elements lose everything above 2 * 65504",
    .source =
        "Markidis et al., NVIDIA Tensor Core Programmability, Performance & Precision (2018); "
        "fp16-emulation-study; h2sgemm Table 1",
};

// egemm: as markidis, with rounding to nearest.
//
//   a0 = RN16(a), a1 = RN16(a - a0)                residual unscaled
//   C  = a1 b1 + a1 b0 + a0 b1 + a0 b0             one accumulator, all of k inside the engine
//
// The four terms alternate after every 16 inner indices: the structure is that of markidis.

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
