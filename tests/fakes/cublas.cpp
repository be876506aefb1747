// libcublas.so.13 without a device: notes its calls, with all that they were given. fake_cuda.hpp says how it is steered.
#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/format_text.hpp"
#include "engines/cuda/cublas/library.hpp"
#include "tests/fakes/fake_cuda.hpp"

namespace {

using kintsugi::core::cuda::BlasHandle;
using kintsugi::core::cuda::ComputeType;
using kintsugi::core::cuda::Cublas;
using kintsugi::core::cuda::DataType;

// Numbers of cublasStatus_t.
constexpr int not_initialized = 1;
constexpr int allocation_failed = 3;
constexpr int invalid_value = 7;
constexpr int execution_failed = 13;

template <class... Values>
void note(fmt::format_string<Values...> format, Values&&... values) {
  fake_cuda_note(fmt::format(format, std::forward<Values>(values)...).c_str());
}

// A handle belongs to the context that it was made in.
struct FakeHandle {
  unsigned long long context;
};
bool is_elsewhere(BlasHandle handle) {
  return reinterpret_cast<FakeHandle*>(handle)->context != fake_cuda_context();
}

// Products since the list of events was empty.
int product_result(BlasHandle handle) {
  if (is_elsewhere(handle)) return not_initialized;
  const std::string events = fake_cuda_events();
  long count = 0;
  for (std::size_t at = events.find("cublasGemm"); at != std::string::npos;
       at = events.find("cublasGemm", at + 1))
    ++count;
  const char* failing = std::getenv("FAKE_CUDA_FAIL_PRODUCT");
  return failing != nullptr && std::strtol(failing, nullptr, 10) == count ? execution_failed : 0;
}

// What the handles are set to. The engine holds a lock from here to the product.
void* stream = nullptr;
bool scalars_on_host = true;

// alpha or beta; where it lies in device memory, its address.

std::string scalar(const void* value, ComputeType type) {
  if (!scalars_on_host) return fmt::format("{}", value);
  switch (type) {
    case ComputeType::f64: return fmt::format("{}", *static_cast<const double*>(value));
    case ComputeType::i32: return fmt::format("{}", *static_cast<const int*>(value));
    default: return fmt::format("{}", *static_cast<const float*>(value));
  }
}

std::string shape(int op_a, int op_b, std::int64_t m, std::int64_t n, std::int64_t k, DataType type,
                  DataType result, ComputeType compute) {
  return fmt::format("op_a={} op_b={} m={} n={} k={} type={} result={} compute={}", op_a, op_b, m, n, k,
                     static_cast<int>(type), static_cast<int>(result), static_cast<int>(compute));
}

}  // namespace

#define KINTSUGI_FAKE extern "C" __attribute__((visibility("default")))
#define KINTSUGI_SAME_TYPE(function, member) \
  static_assert(std::is_same_v<decltype(&function), decltype(Cublas::member)>)

KINTSUGI_FAKE int cublasCreate_v2(BlasHandle* handle) {
  note("cublasCreate");
  if (fake_cuda_capturing() != 0) return allocation_failed;
  static std::vector<std::unique_ptr<FakeHandle>> handles;
  handles.push_back(std::make_unique<FakeHandle>(fake_cuda_context()));
  *handle = reinterpret_cast<BlasHandle>(handles.back().get());
  return 0;
}
KINTSUGI_FAKE int cublasGetVersion_v2(BlasHandle, int* version) {
  *version = 130000;
  return 0;
}
KINTSUGI_FAKE int cublasSetStream_v2(BlasHandle, void* given) {
  stream = given;
  return 0;
}
KINTSUGI_FAKE int cublasSetWorkspace_v2(BlasHandle, void* workspace, std::size_t bytes) {
  note("cublasSetWorkspace {}", bytes);
  return workspace != nullptr && reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0 ? 0 : invalid_value;
}
KINTSUGI_FAKE int cublasSetPointerMode_v2(BlasHandle, int mode) {
  scalars_on_host = mode == 0;
  return 0;
}
KINTSUGI_FAKE const char* cublasGetStatusName(int status) {
  return status == execution_failed ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_OF_THE_FAKE";
}

KINTSUGI_FAKE int cublasGemmEx_64(BlasHandle handle, int op_a, int op_b, std::int64_t m, std::int64_t n,
                                  std::int64_t k, const void* alpha, const void*, DataType type_a,
                                  std::int64_t lda, const void*, DataType, std::int64_t ldb, const void* beta,
                                  void*, DataType type_c, std::int64_t ldc, ComputeType compute, int) {
  note("cublasGemmEx {} lda={} ldb={} ldc={} alpha={} beta={} stream={}",
       shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc, scalar(alpha, compute),
       scalar(beta, compute), stream);
  return product_result(handle);
}
KINTSUGI_FAKE int cublasGemmStridedBatchedEx_64(BlasHandle handle, int op_a, int op_b, std::int64_t m,
                                                std::int64_t n, std::int64_t k, const void* alpha,
                                                const void*, DataType type_a, std::int64_t lda,
                                                long long stride_a, const void*, DataType, std::int64_t ldb,
                                                long long stride_b, const void* beta, void*, DataType type_c,
                                                std::int64_t ldc, long long stride_c, std::int64_t count,
                                                ComputeType compute, int) {
  note(
      "cublasGemmStridedBatchedEx {} lda={} ldb={} ldc={} strides={},{},{} count={} alpha={} beta={} "
      "stream={}",
      shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc, stride_a, stride_b, stride_c, count,
      scalar(alpha, compute), scalar(beta, compute), stream);
  return product_result(handle);
}
KINTSUGI_FAKE int cublasGemmBatchedEx_64(BlasHandle handle, int op_a, int op_b, std::int64_t m,
                                         std::int64_t n, std::int64_t k, const void* alpha,
                                         const void* const*, DataType type_a, std::int64_t lda,
                                         const void* const*, DataType, std::int64_t ldb, const void* beta,
                                         void* const*, DataType type_c, std::int64_t ldc, std::int64_t count,
                                         ComputeType compute, int) {
  note("cublasGemmBatchedEx {} lda={} ldb={} ldc={} count={} alpha={} beta={} stream={}",
       shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc, count, scalar(alpha, compute),
       scalar(beta, compute), stream);
  return product_result(handle);
}

KINTSUGI_SAME_TYPE(cublasCreate_v2, create);
KINTSUGI_SAME_TYPE(cublasGetVersion_v2, version);
KINTSUGI_SAME_TYPE(cublasSetStream_v2, set_stream);
KINTSUGI_SAME_TYPE(cublasSetWorkspace_v2, set_workspace);
KINTSUGI_SAME_TYPE(cublasSetPointerMode_v2, set_pointer_mode);
KINTSUGI_SAME_TYPE(cublasGemmEx_64, gemm);
KINTSUGI_SAME_TYPE(cublasGemmStridedBatchedEx_64, gemm_strided);
KINTSUGI_SAME_TYPE(cublasGemmBatchedEx_64, gemm_pointers);
KINTSUGI_SAME_TYPE(cublasGetStatusName, status_name);
