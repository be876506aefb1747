// cuBLAS, opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace kintsugi::core::cuda {

// Values of cudaDataType_t, cublasComputeType_t, cublasOperation_t and cublasGemmAlgo_t.
enum class DataType : int { f32 = 0, f64 = 1, f16 = 2, i8 = 3, c32 = 4, c64 = 5, i32 = 10, bf16 = 14 };
enum class ComputeType : int {
  f32 = 68,
  f32_pedantic = 69,
  f64 = 70,
  f64_pedantic = 71,
  i32 = 72,
  f32_by_tf32 = 77
};
inline constexpr int default_algorithm = -1;

using BlasHandle = struct BlasHandleTag*;

struct Cublas {
  int (*create)(BlasHandle*) = nullptr;
  int (*version)(BlasHandle, int*) = nullptr;
  int (*set_stream)(BlasHandle, void*) = nullptr;
  int (*set_workspace)(BlasHandle, void*, std::size_t) = nullptr;
  int (*set_pointer_mode)(BlasHandle, int) = nullptr;
  int (*math_mode)(BlasHandle, int*) = nullptr;
  int (*gemm)(BlasHandle, int, int, std::int64_t, std::int64_t, std::int64_t, const void*, const void*,
              DataType, std::int64_t, const void*, DataType, std::int64_t, const void*, void*, DataType,
              std::int64_t, ComputeType, int) = nullptr;
  int (*gemm_strided)(BlasHandle, int, int, std::int64_t, std::int64_t, std::int64_t, const void*,
                      const void*, DataType, std::int64_t, long long, const void*, DataType, std::int64_t,
                      long long, const void*, void*, DataType, std::int64_t, long long, std::int64_t,
                      ComputeType, int) = nullptr;
  int (*gemm_pointers)(BlasHandle, int, int, std::int64_t, std::int64_t, std::int64_t, const void*,
                       const void* const*, DataType, std::int64_t, const void* const*, DataType, std::int64_t,
                       const void*, void* const*, DataType, std::int64_t, std::int64_t, ComputeType,
                       int) = nullptr;
  const char* (*status_name)(int) = nullptr;

  std::string reason;  // reason why it cannot be used; empty if it can
  std::string file;    // name of the opened file
  // True if environment variables enabled emulation of FP32 or FP64 when cuBLAS was opened, since it may read
  // them then.
  bool emulates_fp32 = false;
  bool emulates_fp64 = false;
};

// Returns the copy of cuBLAS that the program has loaded already, else the newest that the system finds.
const Cublas& cublas();

// Compute type of FP32 or FP64 (`wide`) that is native arithmetic on that handle: the default type, unless
// cuBLAS may emulate it. cuBLAS can since 12.9 (FP32) and 13.1 (FP64), and does where
// CUBLAS_EMULATE_SINGLE_PRECISION, CUBLAS_EMULATE_DOUBLE_PRECISION or the handle's math mode let it. Pedantic
// types "ensure standard arithmetic" (cublas_api.h), but are up to 15 % slower (H200).
ComputeType native_compute_type(BlasHandle handle, bool wide);

// Values of cublasStatus_t.
inline constexpr int allocation_failed = 3;

// Fails with out_of_memory or device_error unless the status is success.
void check_blas(int status, const char* what);

}  // namespace kintsugi::core::cuda
