// A libcublas.so.13 without a device: records its calls with their arguments, and multiplies if asked to.
// fake_cuda.hpp lists the environment variables that it reads.
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/fakes/libraries/fake_cublas.hpp"

namespace {

using namespace kintsugi::fake;

// Returns the number of products in the list of events.
long products() {
  const std::string events = fake_cuda_events();
  long count = 0;
  for (std::size_t position = events.find("cublasGemm"); position != std::string::npos;
       position = events.find("cublasGemm", position + 1))
    ++count;
  return count;
}

// Returns the status of a recorded product. Kintsugi must set a workspace, so the default one is refused.
template <class Multiply>
int result_of(BlasHandle handle, const Product& product, std::int64_t count, const Multiply& multiply_all) {
  if (is_elsewhere(handle)) return not_initialized;
  if (!is_valid(product, count)) return invalid_value;
  const char* failing = std::getenv("FAKE_CUDA_FAIL_PRODUCT");
  if (failing != nullptr && std::strtol(failing, nullptr, 10) == products()) return execution_failed;
  const FakeHandle& state = state_of(handle);
  if (state.uses_default_workspace && !state.may_use_default_workspace) return invalid_value;
  const char* min_bytes = std::getenv("FAKE_CUDA_LEAST_WORKSPACE");
  if (min_bytes != nullptr && state.workspace_bytes < std::strtoul(min_bytes, nullptr, 10))
    return allocation_failed;
  if (is_set("FAKE_CUDA_MULTIPLY")) multiply_all();
  return 0;
}

}  // namespace

#define KINTSUGI_SAME_TYPE(function, member) \
  static_assert(std::is_same_v<decltype(&function), decltype(Cublas::member)>)

KINTSUGI_FAKE_BLAS int cublasCreate_v2(BlasHandle* handle) {
  note("cublasCreate");
  if (fake_cuda_capturing() != 0) return allocation_failed;
  static std::mutex mutex;
  static std::vector<std::unique_ptr<FakeHandle>> handles;
  const std::lock_guard lock(mutex);
  handles.push_back(std::make_unique<FakeHandle>(fake_cuda_context()));
  *handle = reinterpret_cast<BlasHandle>(handles.back().get());
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasGetVersion_v2(BlasHandle, int* version) {
  *version = 130100;
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasSetStream_v2(BlasHandle handle, void* stream) {
  state_of(handle).stream = stream;
  state_of(handle).uses_default_workspace = true;
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasSetWorkspace_v2(BlasHandle handle, void* workspace, std::size_t bytes) {
  note("cublasSetWorkspace {}", bytes);
  const bool is_usable = workspace != nullptr && reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;
  if (!is_usable && bytes > 0) return invalid_value;
  state_of(handle).uses_default_workspace = false;
  state_of(handle).workspace_bytes = bytes;
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasSetPointerMode_v2(BlasHandle handle, int mode) {
  state_of(handle).pointer_mode = mode;
  return 0;
}
KINTSUGI_FAKE_BLAS int cublasGetMathMode(BlasHandle handle, int* mode) {
  if (handle == nullptr) return not_initialized;
  const char* value = std::getenv("FAKE_CUDA_MATH_MODE");
  *mode = value != nullptr ? std::atoi(value) : state_of(handle).math_mode;
  return 0;
}
KINTSUGI_FAKE_BLAS const char* cublasGetStatusName(int status) {
  return status == execution_failed ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_OF_THE_FAKE";
}

KINTSUGI_FAKE_BLAS int cublasGemmEx_64(BlasHandle handle, int op_a, int op_b, std::int64_t m, std::int64_t n,
                                       std::int64_t k, const void* alpha, const void* a, DataType type_a,
                                       std::int64_t lda, const void* b, DataType, std::int64_t ldb,
                                       const void* beta, void* c, DataType type_c, std::int64_t ldc,
                                       ComputeType compute, int) {
  if (handle == nullptr) return not_initialized;
  note("cublasGemmEx {} lda={} ldb={} ldc={} alpha={} beta={} stream={}",
       shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc,
       scalar(state_of(handle), alpha, compute), scalar(state_of(handle), beta, compute),
       state_of(handle).stream);
  const Product product{op_a, op_b, m, n, k, alpha, beta, type_a, compute, lda, ldb, ldc};
  return result_of(handle, product, 1, [&] { multiply_item(product, a, b, c); });
}
KINTSUGI_FAKE_BLAS int cublasGemmStridedBatchedEx_64(
    BlasHandle handle, int op_a, int op_b, std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha,
    const void* a, DataType type_a, std::int64_t lda, long long stride_a, const void* b, DataType,
    std::int64_t ldb, long long stride_b, const void* beta, void* c, DataType type_c, std::int64_t ldc,
    long long stride_c, std::int64_t count, ComputeType compute, int) {
  if (handle == nullptr) return not_initialized;
  note(
      "cublasGemmStridedBatchedEx {} lda={} ldb={} ldc={} strides={},{},{} count={} alpha={} beta={} "
      "stream={}",
      shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc, stride_a, stride_b, stride_c, count,
      scalar(state_of(handle), alpha, compute), scalar(state_of(handle), beta, compute),
      state_of(handle).stream);
  const Product product{op_a, op_b, m, n, k, alpha, beta, type_a, compute, lda, ldb, ldc};
  return result_of(handle, product, count, [&] {
    const auto bytes = static_cast<long long>(element_bytes(type_a));
    for (std::int64_t i = 0; i < count; ++i)
      multiply_item(product, static_cast<const char*>(a) + i * stride_a * bytes,
                    static_cast<const char*>(b) + i * stride_b * bytes,
                    static_cast<char*>(c) + i * stride_c * bytes);
  });
}
KINTSUGI_FAKE_BLAS int cublasGemmBatchedEx_64(BlasHandle handle, int op_a, int op_b, std::int64_t m,
                                              std::int64_t n, std::int64_t k, const void* alpha,
                                              const void* const* a, DataType type_a, std::int64_t lda,
                                              const void* const* b, DataType, std::int64_t ldb,
                                              const void* beta, void* const* c, DataType type_c,
                                              std::int64_t ldc, std::int64_t count, ComputeType compute,
                                              int) {
  if (handle == nullptr) return not_initialized;
  note("cublasGemmBatchedEx {} lda={} ldb={} ldc={} count={} alpha={} beta={} stream={}",
       shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc, count,
       scalar(state_of(handle), alpha, compute), scalar(state_of(handle), beta, compute),
       state_of(handle).stream);
  const Product product{op_a, op_b, m, n, k, alpha, beta, type_a, compute, lda, ldb, ldc};
  return result_of(handle, product, count, [&] {
    for (std::int64_t i = 0; i < count; ++i) multiply_item(product, a[i], b[i], c[i]);
  });
}

KINTSUGI_SAME_TYPE(cublasCreate_v2, create);
KINTSUGI_SAME_TYPE(cublasGetVersion_v2, version);
KINTSUGI_SAME_TYPE(cublasSetStream_v2, set_stream);
KINTSUGI_SAME_TYPE(cublasSetWorkspace_v2, set_workspace);
KINTSUGI_SAME_TYPE(cublasSetPointerMode_v2, set_pointer_mode);
KINTSUGI_SAME_TYPE(cublasGetMathMode, math_mode);
KINTSUGI_SAME_TYPE(cublasGemmEx_64, gemm);
KINTSUGI_SAME_TYPE(cublasGemmStridedBatchedEx_64, gemm_strided);
KINTSUGI_SAME_TYPE(cublasGemmBatchedEx_64, gemm_pointers);
KINTSUGI_SAME_TYPE(cublasGetStatusName, status_name);
