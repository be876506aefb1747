// cuBLAS: its functions and the name of the library file that was opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engines/cuda/step_data.hpp"

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

// Functions of cuBLAS. Their parameters are those of its reference, in the same order.
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

  std::string reason;  // reason why cuBLAS cannot be used; empty if it can
  std::string file;    // name of the opened file
  // True if environment variables enabled emulation of FP32 or FP64 when cuBLAS was opened. cuBLAS may have
  // read them at that time; then later changes of the variables have no effect.
  bool emulates_fp32 = false;
  bool emulates_fp64 = false;
};

// Returns cuBLAS. A copy that the program has loaded is taken first, then the file that the setting `cublas`
// names, then the newest version that the system finds.
const Cublas& cublas();

// Compute type for native arithmetic on FP64 (`is_fp64`) or FP32 data. It is the default type, unless cuBLAS
// may emulate that type. cuBLAS can emulate FP32 since 12.9 and FP64 since 13.1; it does so if
// CUBLAS_EMULATE_SINGLE_PRECISION, CUBLAS_EMULATE_DOUBLE_PRECISION or the handle's math mode allow it.
// Pedantic types "ensure standard arithmetic" (cublas_api.h), but are up to 15 % slower.
ComputeType native_compute_type(BlasHandle handle, bool is_fp64);

// Values of cublasStatus_t.
inline constexpr int allocation_failed = 3;

// Throws out_of_memory or device_error unless the status is success. The message begins with `what`.
void check_blas(int status, const char* what);

// Products of slices by cuBLAS, term by term: product_scratch_bytes() and multiply() (steps.hpp) of schedules
// that no kernel of the library computes.
std::size_t cublas_scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t rows,
                                 std::int64_t columns);
void multiply_by_cublas(const Queue& queue, const Schedule& schedule, const Slices& a, const Slices& b,
                        const Accumulators& sums, std::byte* scratch, const DeviceFit* fit);

// Creates the cuBLAS handle of the current context, if there is none yet. That allocates memory.
void prepare_blas();

}  // namespace kintsugi::core::cuda
