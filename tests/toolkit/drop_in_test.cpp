// Names and numbers of the drop-in for cuBLAS against NVIDIA's headers, when this file is compiled, which is
// where a toolkit is.
#define __CUDA_API_VERSION_INTERNAL  // for headers_test.cpp, which may be compiled together with this file
#include <cublasLt.h>
#include <cublas_api.h>
#include <cuda.h>
#include <cstddef>
#include <cstdint>

#include "drop_in/core/call.hpp"
#include "drop_in/cublas/api.hpp"
#include "kintsugi/kintsugi.h"
#include "toolkit/seen.hpp"

namespace kintsugi::cublas {
namespace {

using drop_in::Routine;
using test::same;

// Elements of the real types; those of complex types are structs, which all are alike.
template <int type>
struct ElementOf {
  using Type = void;
};
template <>
struct ElementOf<KINTSUGI_F32> {
  using Type = float;
};
template <>
struct ElementOf<KINTSUGI_F64> {
  using Type = double;
};

template <class T, class Int>
using GemmFunction = int (*)(Handle, int, int, Int, Int, Int, const T*, const T*, Int, const T*, Int,
                             const T*, T*, Int);
template <class T, class Int>
using TypedFunction = int (*)(Handle, int, int, Int, Int, Int, const T*, const void*, int, Int, const void*,
                              int, Int, const T*, void*, int, Int);
// Functions with a compute type have overloads in C++, so that one is selected by NVIDIA's own types.
template <class Int>
using ExFunction = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, Int, Int, Int,
                                      const void*, const void*, cudaDataType, Int, const void*, cudaDataType,
                                      Int, const void*, void*, cudaDataType, Int, cublasComputeType_t,
                                      cublasGemmAlgo_t);
template <class T, class Int>
using StridedFunction = int (*)(Handle, int, int, Int, Int, Int, const T*, const T*, Int, long long, const T*,
                                Int, long long, const T*, T*, Int, long long, Int);
template <class Int>
using StridedExFunction = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, Int, Int,
                                             Int, const void*, const void*, cudaDataType, Int, long long,
                                             const void*, cudaDataType, Int, long long, const void*, void*,
                                             cudaDataType, Int, long long, Int, cublasComputeType_t,
                                             cublasGemmAlgo_t);
template <class T, class Int>
using BatchedFunction = int (*)(Handle, int, int, Int, Int, Int, const T*, const T* const*, Int,
                                const T* const*, Int, const T*, T* const*, Int, Int);
template <class Int>
using BatchedExFunction = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, Int, Int,
                                             Int, const void*, const void* const*, cudaDataType, Int,
                                             const void* const*, cudaDataType, Int, const void*, void* const*,
                                             cudaDataType, Int, Int, cublasComputeType_t, cublasGemmAlgo_t);

// herk alone has scalars of another type than its matrices, which as a complex one is any struct here.
template <class T, class Scalar, class Int>
using UpdateFunction = int (*)(Handle, int, int, Int, Int, const Scalar*, const T*, Int, const Scalar*, T*,
                               Int);
// beta of her2k and herkx is real.
template <class T, class Scalar, class Int>
using UpdateWithBFunction = int (*)(Handle, int, int, Int, Int, const T*, const T*, Int, const T*, Int,
                                    const Scalar*, T*, Int);
template <class T, class Int>
using TriangularFunction = int (*)(Handle, int, int, int, int, Int, Int, const T*, const T*, Int, const T*,
                                   Int, T*, Int);
template <class T, class Int>
using SymmetricFunction = int (*)(Handle, int, int, Int, Int, const T*, const T*, Int, const T*, Int,
                                  const T*, T*, Int);
template <class T, class Int>
using SolveFunction = int (*)(Handle, int, int, int, int, Int, Int, const T*, const T*, Int, T*, Int);

template <int type, Routine routine>
struct ScalarOf : ElementOf<type> {};
template <>
struct ScalarOf<KINTSUGI_C32, Routine::herk> : ElementOf<KINTSUGI_F32> {};
template <>
struct ScalarOf<KINTSUGI_C64, Routine::herk> : ElementOf<KINTSUGI_F64> {};
template <int type, Routine routine>
struct BetaOf
    : ScalarOf<type, routine == Routine::her2k || routine == Routine::herkx ? Routine::herk : routine> {};

// The functions whose types C++ headers overload are cast, which takes one of the named type alone.
#define KINTSUGI_CUBLAS_GEMM(type, integer, symbol) \
  static_assert(same<GemmFunction<ElementOf<type>::Type, integer>, decltype(&symbol)>, #symbol);
#define KINTSUGI_CUBLAS_TYPED_GEMM(type, integer, symbol) \
  static_assert(same<TypedFunction<ElementOf<type>::Type, integer>, decltype(&symbol)>, #symbol);
#define KINTSUGI_CUBLAS_GEMM_EX(integer, symbol) \
  static_assert(sizeof(static_cast<ExFunction<integer>>(&symbol)) > 0, #symbol);
#define KINTSUGI_CUBLAS_STRIDED(type, integer, symbol) \
  static_assert(same<StridedFunction<ElementOf<type>::Type, integer>, decltype(&symbol)>, #symbol);
#define KINTSUGI_CUBLAS_STRIDED_EX(integer, symbol) \
  static_assert(sizeof(static_cast<StridedExFunction<integer>>(&symbol)) > 0, #symbol);
#define KINTSUGI_CUBLAS_BATCHED(type, integer, symbol) \
  static_assert(same<BatchedFunction<ElementOf<type>::Type, integer>, decltype(&symbol)>, #symbol);
#define KINTSUGI_CUBLAS_BATCHED_EX(integer, symbol) \
  static_assert(sizeof(static_cast<BatchedExFunction<integer>>(&symbol)) > 0, #symbol);
#define KINTSUGI_CUBLAS_UPDATE(type, integer, routine, symbol)                                               \
  static_assert(same<UpdateFunction<ElementOf<type>::Type, ScalarOf<type, Routine::routine>::Type, integer>, \
                     decltype(&symbol)>,                                                                     \
                #symbol);
#define KINTSUGI_CUBLAS_UPDATE_WITH_B(type, integer, routine, symbol)                                 \
  static_assert(                                                                                      \
      same<UpdateWithBFunction<ElementOf<type>::Type, BetaOf<type, Routine::routine>::Type, integer>, \
           decltype(&symbol)>,                                                                        \
      #symbol);
#define KINTSUGI_CUBLAS_TRIANGULAR(type, integer, symbol) \
  static_assert(same<TriangularFunction<ElementOf<type>::Type, integer>, decltype(&symbol)>, #symbol);
#define KINTSUGI_CUBLAS_SYMMETRIC(type, integer, routine, symbol) \
  static_assert(same<SymmetricFunction<ElementOf<type>::Type, integer>, decltype(&symbol)>, #symbol);
#define KINTSUGI_CUBLAS_SOLVE(type, integer, symbol) \
  static_assert(same<SolveFunction<ElementOf<type>::Type, integer>, decltype(&symbol)>, #symbol);
#include "drop_in/cublas/symbols.def"

static_assert(side_left == CUBLAS_SIDE_LEFT && side_right == CUBLAS_SIDE_RIGHT);
static_assert(fill_lower == CUBLAS_FILL_MODE_LOWER && fill_upper == CUBLAS_FILL_MODE_UPPER);
static_assert(diagonal_not_unit == CUBLAS_DIAG_NON_UNIT && diagonal_unit == CUBLAS_DIAG_UNIT);
static_assert(epilogue_default == CUBLASLT_EPILOGUE_DEFAULT && epilogue_bias == CUBLASLT_EPILOGUE_BIAS);
static_assert(epilogue_relu == CUBLASLT_EPILOGUE_RELU && epilogue_gelu == CUBLASLT_EPILOGUE_GELU);
static_assert((epilogue_drelu | epilogue_aux | epilogue_bgrad) == CUBLASLT_EPILOGUE_DRELU_BGRAD);
static_assert((epilogue_dgelu | epilogue_aux | epilogue_bgrad) == CUBLASLT_EPILOGUE_DGELU_BGRAD);
static_assert((epilogue_gelu | epilogue_aux | epilogue_bias) == CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
static_assert(epilogue_bgrada == CUBLASLT_EPILOGUE_BGRADA && epilogue_bgradb == CUBLASLT_EPILOGUE_BGRADB);
static_assert(success == CUBLAS_STATUS_SUCCESS && execution_failed == CUBLAS_STATUS_EXECUTION_FAILED);
static_assert(not_supported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(data_f32 == CUDA_R_32F && data_f64 == CUDA_R_64F);
static_assert(data_c32 == CUDA_C_32F && data_c64 == CUDA_C_64F);
static_assert(compute_f32 == CUBLAS_COMPUTE_32F && compute_f64 == CUBLAS_COMPUTE_64F);
static_assert(compute_f32_bf16x9 == CUBLAS_COMPUTE_32F_EMULATED_16BFX9);
static_assert(compute_f64_fixed_point == CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT);
static_assert(mantissa_fixed == CUDA_EMULATION_MANTISSA_CONTROL_FIXED);
static_assert(CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_CONTROL == 2 &&
              CUBLASLT_EMULATION_DESC_FIXEDPOINT_MAX_MANTISSA_BIT_COUNT == 3 &&
              CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_OFFSET == 4 &&
              CUBLASLT_EMULATION_DESC_FIXEDPOINT_MANTISSA_BIT_COUNT_POINTER == 5);
static_assert(tensor_op_math == CUBLAS_TENSOR_OP_MATH && pedantic_math == CUBLAS_PEDANTIC_MATH);
static_assert(tf32_math == CUBLAS_TF32_TENSOR_OP_MATH);
static_assert(bf16x9_math_bit == CUBLAS_FP32_EMULATED_BF16X9_MATH);
static_assert(fixed_point_math_bit == CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH);
static_assert(default_algorithm == CUBLAS_GEMM_DEFAULT && max_algorithm == CUBLAS_GEMM_ALGO15_TENSOR_OP);
static_assert(+CUBLAS_OP_N == +KINTSUGI_OP_N && +CUBLAS_OP_T == +KINTSUGI_OP_T &&
              +CUBLAS_OP_C == +KINTSUGI_OP_C);
static_assert(+CUBLAS_POINTER_MODE_HOST == +KINTSUGI_SCALARS_ON_HOST);
static_assert(+CUBLAS_POINTER_MODE_DEVICE == +KINTSUGI_SCALARS_ON_DEVICE);

// cublasLtMatmul, whose descriptors are pointers to structs.
using MatmulFunction = int (*)(void*, const void*, const void*, const void*, const void*, const void*,
                               const void*, const void*, const void*, const void*, void*, const void*,
                               const void*, void*, std::size_t, void*);
static_assert(same<MatmulFunction, decltype(&cublasLtMatmul)>);
static_assert(same<int (*)(void**, int, std::uint64_t, std::uint64_t, std::int64_t),
                   decltype(&cublasLtMatrixLayoutCreate)>);
static_assert(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE == 0 && CUBLASLT_MATMUL_DESC_SCALE_TYPE == 1);
static_assert(CUBLASLT_MATMUL_DESC_POINTER_MODE == 2 && CUBLASLT_MATMUL_DESC_TRANSA == 3);
static_assert(CUBLASLT_MATMUL_DESC_TRANSB == 4 && CUBLASLT_MATMUL_DESC_TRANSC == 5);
static_assert(CUBLASLT_MATMUL_DESC_FILL_MODE == 6 && CUBLASLT_MATMUL_DESC_EPILOGUE == 7);
static_assert(CUBLASLT_MATMUL_DESC_BIAS_POINTER == 8 && CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER == 11);
static_assert(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR == 38);
static_assert(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER == 17 && CUBLASLT_MATMUL_DESC_D_SCALE_POINTER == 20);
static_assert(CUBLASLT_MATRIX_LAYOUT_TYPE == 0 && CUBLASLT_MATRIX_LAYOUT_ORDER == 1);
static_assert(CUBLASLT_MATRIX_LAYOUT_ROWS == 2 && CUBLASLT_MATRIX_LAYOUT_COLS == 3);
static_assert(CUBLASLT_MATRIX_LAYOUT_LD == 4 && CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT == 5);
static_assert(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET == 6 && CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET == 7);
static_assert(CUBLASLT_ORDER_COL == 0 && CUBLASLT_ORDER_ROW == 1 && CUBLAS_FILL_MODE_FULL == 2);

// The driver's descriptions of a pool and of a copy, in drop_in/cublas/device.cpp.
static_assert(sizeof(CUmemPoolProps) == 88 && CU_MEMPOOL_ATTR_RELEASE_THRESHOLD == 4);
static_assert(sizeof(CUDA_MEMCPY2D) == 128 && offsetof(CUDA_MEMCPY2D, srcDevice) == 32);
static_assert(offsetof(CUDA_MEMCPY2D, srcPitch) == 48 && offsetof(CUDA_MEMCPY2D, dstXInBytes) == 56);
static_assert(offsetof(CUDA_MEMCPY2D, WidthInBytes) == 112 && CU_MEMORYTYPE_DEVICE == 2);

}  // namespace
}  // namespace kintsugi::cublas
