// Types and numbers of cuBLAS 12 and 13 that the library uses; tests/toolkit compares them with NVIDIA's
// headers.
#pragma once

#include <cstdint>

namespace kintsugi::cublas {

using Handle = struct cublasContext*;
using XtHandle = struct cublasXtContext*;

// Numbers of cublasStatus_t.
inline constexpr int success = 0;
inline constexpr int execution_failed = 13;
inline constexpr int not_supported = 15;

// Numbers of cudaDataType_t.
inline constexpr int data_f32 = 0, data_f64 = 1, data_c32 = 4, data_c64 = 5;

// Numbers of cublasComputeType_t.
inline constexpr int compute_f32 = 68, compute_f64 = 70, compute_f32_bf16x9 = 78,
                     compute_f64_fixed_point = 79;

// cudaEmulationMantissaControl: the mantissa bits of the emulation of FP64 are fixed.
inline constexpr int mantissa_fixed = 1;

// Numbers of cublasSideMode_t, cublasFillMode_t and cublasDiagType_t.
inline constexpr int side_left = 0, side_right = 1;
inline constexpr int fill_lower = 0, fill_upper = 1;
inline constexpr int diagonal_not_unit = 0, diagonal_unit = 1;

// Numbers of cublasMath_t: the two lowest bits name a mode, other bits are independent flags.
inline constexpr int math_mode_mask = 3;
inline constexpr int tensor_op_math = 1;
inline constexpr int pedantic_math = 2;
inline constexpr int tf32_math = 3;
inline constexpr int bf16x9_math_bit = 4;
inline constexpr int fixed_point_math_bit = 8;

// cublasGemmAlgo_t: algorithms from default_algorithm to max_algorithm are accepted and ignored for FP32 and
// FP64 by cuBLAS on devices of compute capability 8.0 and later.
inline constexpr int default_algorithm = -1;
inline constexpr int max_algorithm = 115;

// Numbers of cublasLtEpilogue_t: bits, of which `aux` goes with an auxiliary matrix and `bgrad` with the
// gradient of a bias.
inline constexpr std::uint32_t epilogue_default = 1, epilogue_relu = 2, epilogue_bias = 4, epilogue_drelu = 8,
                               epilogue_bgrad = 16, epilogue_gelu = 32, epilogue_dgelu = 64,
                               epilogue_aux = 128, epilogue_bgrada = 256, epilogue_bgradb = 512;

}  // namespace kintsugi::cublas
