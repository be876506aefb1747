// ozaki-fp64: the Ozaki scheme on fp64 slices, products by FP64 GEMM (DGEMM-DP-CR of dgemm-tc's Table 1).
//
// Like ozaki-fp16, with k 2^(2 bits) <= 2^53, and mode=cr by default.
#pragma once

#include "formats/formats.hpp"
#include "schemes/ozaki_fp16.hpp"

namespace kintsugi::core::schemes {

inline constexpr Scheme ozaki_fp64{
    .name = "ozaki-fp64",
    .summary = "DGEMM-DP-CR: integer slices in fp64, products without an error, correctly rounded",
    .operands = {OperandType::f32, OperandType::f64},
    .program = ozaki1_program(core::fp64, Ozaki1Parameters::Mode::cr),
    .bound = "that of ozaki-fp16",
    .window = "that of ozaki-fp16",
    .source = "Mukunoki, Ozaki, Ogita and Imamura, DGEMM using Tensor Cores (dgemm-tc), Table 1",
    .parameters = ozaki1_parameters,
    .configure = configure_ozaki1,
    .fit = fit_ozaki1,
};

}  // namespace kintsugi::core::schemes
