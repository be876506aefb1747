// Functions of the fake cuBLAS that programs call and the engine does not. They check their arguments as
// cuBLAS documents it, and note their names.
#include <cstdint>

#include "kintsugi/kintsugi.h"
#include "tests/fakes/libraries/fake_cublas.hpp"

namespace {

using namespace kintsugi::fake;

enum class Batch { single, strided, pointers };

// Arguments of a product; the matrices are pointers to arrays of pointers for Batch::pointers.
struct ProgramCall {
  Product product;
  const void* a;
  const void* b;
  void* c;
  Batch batch = Batch::single;
  long long stride_a = 0, stride_b = 0, stride_c = 0;
  std::int64_t count = 1;
};

void multiply_batch(const ProgramCall& call) {
  const auto bytes = static_cast<long long>(element_bytes(call.product.type));
  for (std::int64_t i = 0; i < call.count; ++i) {
    if (call.batch == Batch::pointers) {
      multiply_item(call.product, static_cast<const void* const*>(call.a)[i],
                    static_cast<const void* const*>(call.b)[i], static_cast<void* const*>(call.c)[i]);
      continue;
    }
    multiply_item(call.product, static_cast<const char*>(call.a) + i * call.stride_a * bytes,
                  static_cast<const char*>(call.b) + i * call.stride_b * bytes,
                  static_cast<char*>(call.c) + i * call.stride_c * bytes);
  }
}

int answer(const char* name, BlasHandle handle, const ProgramCall& call) {
  if (handle == nullptr) return not_initialized;
  const Product& p = call.product;
  note("{} {} stream={}", name, shape(p.op_a, p.op_b, p.m, p.n, p.k, p.type, p.type, p.compute),
       state_of(handle).stream);
  if (!is_valid(p, call.count)) return invalid_value;
  if (is_set("FAKE_CUDA_MULTIPLY")) multiply_batch(call);
  return 0;
}

// Elements by the numbers of kintsugi_type.
constexpr DataType data_types[] = {DataType::f32, DataType::f64, DataType::c32, DataType::c64};
constexpr DataType data_type_of(int type) { return data_types[type]; }
constexpr ComputeType compute_type_of(int type) {
  return type == KINTSUGI_F32 || type == KINTSUGI_C32 ? ComputeType::f32 : ComputeType::f64;
}

Product product(DataType type, ComputeType compute, int op_a, int op_b, std::int64_t m, std::int64_t n,
                std::int64_t k, const void* alpha, const void* beta, std::int64_t lda, std::int64_t ldb,
                std::int64_t ldc) {
  return {op_a, op_b, m, n, k, alpha, beta, type, compute, lda, ldb, ldc};
}

}  // namespace

// ---------------------------------------------------------------- handles

// Lets products of this handle use cuBLAS's own workspace, which the engine must never do.
KINTSUGI_FAKE_BLAS void fake_cublas_allow_default_workspace(BlasHandle handle) {
  state_of(handle).may_use_default_workspace = true;
}
KINTSUGI_FAKE_BLAS int cublasDestroy_v2(BlasHandle handle) { return handle == nullptr ? not_initialized : 0; }
KINTSUGI_FAKE_BLAS int cublasGetStream_v2(BlasHandle handle, void** stream) {
  if (handle == nullptr) return not_initialized;
  *stream = state_of(handle).stream;
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasGetPointerMode_v2(BlasHandle handle, int* mode) {
  if (handle == nullptr) return not_initialized;
  *mode = state_of(handle).pointer_mode;
  return 0;
}
// Settings of the emulation of FP64.
#define KINTSUGI_FAKE_SETTING(name, type, member)                                             \
  KINTSUGI_FAKE_BLAS int cublasSetFixedPointEmulation##name(BlasHandle handle, type value) {  \
    if (handle == nullptr) return not_initialized;                                            \
    state_of(handle).member = value;                                                          \
    return 0;                                                                                 \
  }                                                                                           \
  KINTSUGI_FAKE_BLAS int cublasGetFixedPointEmulation##name(BlasHandle handle, type* value) { \
    if (handle == nullptr) return not_initialized;                                            \
    *value = state_of(handle).member;                                                         \
    return 0;                                                                                 \
  }
KINTSUGI_FAKE_SETTING(MantissaControl, int, mantissa_control)
KINTSUGI_FAKE_SETTING(MaxMantissaBitCount, int, mantissa_bits)
KINTSUGI_FAKE_SETTING(MantissaBitOffset, int, mantissa_offset)
KINTSUGI_FAKE_SETTING(MantissaBitCountPointer, int*, mantissa_count)
#undef KINTSUGI_FAKE_SETTING

KINTSUGI_FAKE_BLAS int cublasSetMathMode(BlasHandle handle, int mode) {
  if (handle == nullptr) return not_initialized;
  state_of(handle).math_mode = mode;
  return 0;
}

// ---------------------------------------------------------------- products

#define KINTSUGI_CUBLAS_GEMM(type_, integer, symbol_)                                                       \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int op_a, int op_b, integer m, integer n, integer k,    \
                                 const void* alpha, const void* a, integer lda, const void* b, integer ldb, \
                                 const void* beta, void* c, integer ldc) {                                  \
    return answer(#symbol_, handle,                                                                         \
                  {product(data_type_of(type_), compute_type_of(type_), op_a, op_b, m, n, k, alpha, beta,   \
                           lda, ldb, ldc),                                                                  \
                   a, b, c});                                                                               \
  }
#define KINTSUGI_CUBLAS_TYPED_GEMM(type_, integer, symbol_)                                                 \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int op_a, int op_b, integer m, integer n, integer k,    \
                                 const void* alpha, const void* a, DataType type_a, integer lda,            \
                                 const void* b, DataType, integer ldb, const void* beta, void* c, DataType, \
                                 integer ldc) {                                                             \
    return answer(                                                                                          \
        #symbol_, handle,                                                                                   \
        {product(type_a, ComputeType::f32, op_a, op_b, m, n, k, alpha, beta, lda, ldb, ldc), a, b, c});     \
  }
#define KINTSUGI_CUBLAS_STRIDED(type_, integer, symbol_)                                                    \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int op_a, int op_b, integer m, integer n, integer k,    \
                                 const void* alpha, const void* a, integer lda, long long stride_a,         \
                                 const void* b, integer ldb, long long stride_b, const void* beta, void* c, \
                                 integer ldc, long long stride_c, integer count) {                          \
    return answer(#symbol_, handle,                                                                         \
                  {product(data_type_of(type_), compute_type_of(type_), op_a, op_b, m, n, k, alpha, beta,   \
                           lda, ldb, ldc),                                                                  \
                   a, b, c, Batch::strided, stride_a, stride_b, stride_c, count});                          \
  }
#define KINTSUGI_CUBLAS_BATCHED(type_, integer, symbol_)                                                     \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int op_a, int op_b, integer m, integer n, integer k,     \
                                 const void* alpha, const void* const* a, integer lda, const void* const* b, \
                                 integer ldb, const void* beta, void** c, integer ldc, integer count) {      \
    return answer(#symbol_, handle,                                                                          \
                  {product(data_type_of(type_), compute_type_of(type_), op_a, op_b, m, n, k, alpha, beta,    \
                           lda, ldb, ldc),                                                                   \
                   a, b, c, Batch::pointers, 0, 0, 0, count});                                               \
  }
#define KINTSUGI_CUBLAS_XT(type_, symbol_)                                                            \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int op_a, int op_b, std::size_t m, std::size_t n, \
                                 std::size_t k, const void* alpha, const void* a, std::size_t lda,    \
                                 const void* b, std::size_t ldb, const void* beta, void* c,           \
                                 std::size_t ldc) {                                                   \
    const auto size = [](std::size_t value) { return static_cast<std::int64_t>(value); };             \
    return answer(#symbol_, handle,                                                                   \
                  {product(data_type_of(type_), compute_type_of(type_), op_a, op_b, size(m), size(n), \
                           size(k), alpha, beta, size(lda), size(ldb), size(ldc)),                    \
                   a, b, c});                                                                         \
  }
#include "drop_in/cublas/symbols.def"

// Handles of cublasXt have no stream.
KINTSUGI_FAKE_BLAS int cublasXtCreate(BlasHandle* handle) {
  *handle = reinterpret_cast<BlasHandle>(new FakeHandle{});
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasXtDestroy(BlasHandle handle) {
  delete &state_of(handle);
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasXtDeviceSelect(BlasHandle, int count, int*) {
  return count > 0 ? 0 : invalid_value;
}

// Their _64 forms are the engine's.
KINTSUGI_FAKE_BLAS int cublasGemmEx(BlasHandle handle, int op_a, int op_b, int m, int n, int k,
                                    const void* alpha, const void* a, DataType type_a, int lda, const void* b,
                                    DataType, int ldb, const void* beta, void* c, DataType, int ldc,
                                    ComputeType compute, int) {
  return answer("cublasGemmEx", handle,
                {product(type_a, compute, op_a, op_b, m, n, k, alpha, beta, lda, ldb, ldc), a, b, c});
}
KINTSUGI_FAKE_BLAS int cublasGemmStridedBatchedEx(BlasHandle handle, int op_a, int op_b, int m, int n, int k,
                                                  const void* alpha, const void* a, DataType type_a, int lda,
                                                  long long stride_a, const void* b, DataType, int ldb,
                                                  long long stride_b, const void* beta, void* c, DataType,
                                                  int ldc, long long stride_c, int count, ComputeType compute,
                                                  int) {
  return answer("cublasGemmStridedBatchedEx", handle,
                {product(type_a, compute, op_a, op_b, m, n, k, alpha, beta, lda, ldb, ldc), a, b, c,
                 Batch::strided, stride_a, stride_b, stride_c, count});
}
KINTSUGI_FAKE_BLAS int cublasGemmBatchedEx(BlasHandle handle, int op_a, int op_b, int m, int n, int k,
                                           const void* alpha, const void* const* a, DataType type_a, int lda,
                                           const void* const* b, DataType, int ldb, const void* beta,
                                           void** c, DataType, int ldc, int count, ComputeType compute, int) {
  return answer("cublasGemmBatchedEx", handle,
                {product(type_a, compute, op_a, op_b, m, n, k, alpha, beta, lda, ldb, ldc), a, b, c,
                 Batch::pointers, 0, 0, 0, count});
}
