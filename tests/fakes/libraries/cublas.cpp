// A libcublas.so.13 without a device: records its calls with their arguments, and multiplies if asked to.
// fake_cuda.hpp lists the environment variables that it reads.
#include <complex>
#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text/format_text.hpp"
#include "engines/cuda/cublas/library.hpp"
#include "tests/fakes/libraries/fake_cuda.hpp"

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

// Settings of all handles. The engine holds a lock from here to the product.
void* stream = nullptr;
bool scalars_on_host = true;
bool uses_default_workspace = true;  // true from cublasSetStream until cublasSetWorkspace, as in cuBLAS
std::size_t workspace_bytes = 0;

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string(value) != "0";
}

// As cuBLAS documents it, environment variables make it emulate products of the default compute types of FP32
// and FP64, and of no other type.
bool emulates(ComputeType type) {
  if (type == ComputeType::f64) return is_set("CUBLAS_EMULATE_DOUBLE_PRECISION");
  return type == ComputeType::f32 && is_set("CUBLAS_EMULATE_SINGLE_PRECISION");
}

bool is_wide(ComputeType type) { return type == ComputeType::f64 || type == ComputeType::f64_pedantic; }

// Text of alpha or beta: its value on the host, else its address in device memory.
std::string scalar(const void* value, ComputeType type) {
  if (!scalars_on_host) return fmt::format("{}", value);
  if (is_wide(type)) return fmt::format("{}", *static_cast<const double*>(value));
  if (type == ComputeType::i32) return fmt::format("{}", *static_cast<const int*>(value));
  return fmt::format("{}", *static_cast<const float*>(value));
}

std::string shape(int op_a, int op_b, std::int64_t m, std::int64_t n, std::int64_t k, DataType type,
                  DataType result, ComputeType compute) {
  return fmt::format("op_a={} op_b={} m={} n={} k={} type={} result={} compute={}", op_a, op_b, m, n, k,
                     static_cast<int>(type), static_cast<int>(result), static_cast<int>(compute));
}

// A product in BLAS's terms.
struct Product {
  int op_a, op_b;
  std::int64_t m, n, k;
  const void* alpha;
  const void* beta;
  DataType type;
  ComputeType compute;
  std::int64_t lda, ldb, ldc;
};

// An operand's element rounded to 8 bits: an emulation whose results clearly differ from native ones.
template <class T>
T coarse(T x) {
  constexpr T scale = (1LL << (std::is_same_v<T, float> ? 16 : 45)) + 1;
  const T high = scale * x;
  return high - (high - x);
}
template <class T>
std::complex<T> coarse(std::complex<T> x) {
  return {coarse(x.real()), coarse(x.imag())};
}

template <class T>
T conjugate(T x) {
  return x;
}
template <class T>
std::complex<T> conjugate(std::complex<T> x) {
  return std::conj(x);
}

template <class T>
T element(const T* data, int op, std::int64_t ld, std::int64_t row, std::int64_t column, bool emulated) {
  const T x = op == 0 ? data[row + column * ld] : data[column + row * ld];
  const T value = op == 2 ? conjugate(x) : x;
  return emulated ? coarse(value) : value;
}

template <class T>
void multiply(const Product& p, const T* a, const T* b, T* c) {
  const T alpha = *static_cast<const T*>(p.alpha);
  const T beta = *static_cast<const T*>(p.beta);
  const bool emulated = emulates(p.compute);
  for (std::int64_t j = 0; j < p.n; ++j) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      T sum = 0;
      for (std::int64_t q = 0; q < p.k; ++q)
        sum += element(a, p.op_a, p.lda, i, q, emulated) * element(b, p.op_b, p.ldb, q, j, emulated);
      T& result = c[i + j * p.ldc];
      result = beta == T(0) ? alpha * sum : alpha * sum + beta * result;
    }
  }
}

std::size_t element_bytes(DataType type) {
  return type == DataType::f32 ? 4 : type == DataType::c64 ? 16 : 8;
}

void multiply_item(const Product& p, const void* a, const void* b, void* c) {
  const auto as = [&]<class T>(T) {
    multiply(p, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(c));
  };
  switch (p.type) {
    case DataType::f32: return as(float{});
    case DataType::f64: return as(double{});
    case DataType::c32: return as(std::complex<float>{});
    case DataType::c64: return as(std::complex<double>{});
    default: return;  // slices
  }
}

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
int result_of(BlasHandle handle, const Multiply& multiply_all) {
  if (is_elsewhere(handle)) return not_initialized;
  const char* failing = std::getenv("FAKE_CUDA_FAIL_PRODUCT");
  if (failing != nullptr && std::strtol(failing, nullptr, 10) == products()) return execution_failed;
  if (uses_default_workspace) return invalid_value;
  const char* min_bytes = std::getenv("FAKE_CUDA_LEAST_WORKSPACE");
  if (min_bytes != nullptr && workspace_bytes < std::strtoul(min_bytes, nullptr, 10))
    return allocation_failed;
  if (is_set("FAKE_CUDA_MULTIPLY")) multiply_all();
  return 0;
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
  *version = 130100;
  return 0;
}
KINTSUGI_FAKE int cublasSetStream_v2(BlasHandle, void* given) {
  stream = given;
  uses_default_workspace = true;
  return 0;
}
KINTSUGI_FAKE int cublasSetWorkspace_v2(BlasHandle, void* workspace, std::size_t bytes) {
  note("cublasSetWorkspace {}", bytes);
  const bool is_usable = workspace != nullptr && reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;
  if (!is_usable && bytes > 0) return invalid_value;
  uses_default_workspace = false;
  workspace_bytes = bytes;
  return 0;
}
KINTSUGI_FAKE int cublasSetPointerMode_v2(BlasHandle, int mode) {
  scalars_on_host = mode == 0;
  return 0;
}
KINTSUGI_FAKE int cublasGetMathMode(BlasHandle, int* mode) {
  const char* value = std::getenv("FAKE_CUDA_MATH_MODE");
  *mode = value != nullptr ? std::atoi(value) : 0;
  return 0;
}
KINTSUGI_FAKE const char* cublasGetStatusName(int status) {
  return status == execution_failed ? "CUBLAS_STATUS_EXECUTION_FAILED" : "CUBLAS_STATUS_OF_THE_FAKE";
}

KINTSUGI_FAKE int cublasGemmEx_64(BlasHandle handle, int op_a, int op_b, std::int64_t m, std::int64_t n,
                                  std::int64_t k, const void* alpha, const void* a, DataType type_a,
                                  std::int64_t lda, const void* b, DataType, std::int64_t ldb,
                                  const void* beta, void* c, DataType type_c, std::int64_t ldc,
                                  ComputeType compute, int) {
  note("cublasGemmEx {} lda={} ldb={} ldc={} alpha={} beta={} stream={}",
       shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc, scalar(alpha, compute),
       scalar(beta, compute), stream);
  return result_of(handle, [&] {
    multiply_item({op_a, op_b, m, n, k, alpha, beta, type_a, compute, lda, ldb, ldc}, a, b, c);
  });
}
// Functions that only the calling program uses, not the engine.
KINTSUGI_FAKE int cublasDestroy_v2(BlasHandle) { return 0; }
KINTSUGI_FAKE int cublasSgemm_v2(BlasHandle, int op_a, int op_b, int m, int n, int k, const float* alpha,
                                 const float* a, int lda, const float* b, int ldb, const float* beta,
                                 float* c, int ldc) {
  const Product product{op_a, op_b, m, n, k, alpha, beta, DataType::f32, ComputeType::f32, lda, ldb, ldc};
  if (is_set("FAKE_CUDA_MULTIPLY")) multiply_item(product, a, b, c);
  return 0;
}
KINTSUGI_FAKE int cublasGemmStridedBatchedEx_64(BlasHandle handle, int op_a, int op_b, std::int64_t m,
                                                std::int64_t n, std::int64_t k, const void* alpha,
                                                const void* a, DataType type_a, std::int64_t lda,
                                                long long stride_a, const void* b, DataType, std::int64_t ldb,
                                                long long stride_b, const void* beta, void* c,
                                                DataType type_c, std::int64_t ldc, long long stride_c,
                                                std::int64_t count, ComputeType compute, int) {
  note(
      "cublasGemmStridedBatchedEx {} lda={} ldb={} ldc={} strides={},{},{} count={} alpha={} beta={} "
      "stream={}",
      shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc, stride_a, stride_b, stride_c, count,
      scalar(alpha, compute), scalar(beta, compute), stream);
  return result_of(handle, [&] {
    const auto bytes = static_cast<long long>(element_bytes(type_a));
    for (std::int64_t i = 0; i < count; ++i)
      multiply_item({op_a, op_b, m, n, k, alpha, beta, type_a, compute, lda, ldb, ldc},
                    static_cast<const char*>(a) + i * stride_a * bytes,
                    static_cast<const char*>(b) + i * stride_b * bytes,
                    static_cast<char*>(c) + i * stride_c * bytes);
  });
}
KINTSUGI_FAKE int cublasGemmBatchedEx_64(BlasHandle handle, int op_a, int op_b, std::int64_t m,
                                         std::int64_t n, std::int64_t k, const void* alpha,
                                         const void* const* a, DataType type_a, std::int64_t lda,
                                         const void* const* b, DataType, std::int64_t ldb, const void* beta,
                                         void* const* c, DataType type_c, std::int64_t ldc,
                                         std::int64_t count, ComputeType compute, int) {
  note("cublasGemmBatchedEx {} lda={} ldb={} ldc={} count={} alpha={} beta={} stream={}",
       shape(op_a, op_b, m, n, k, type_a, type_c, compute), lda, ldb, ldc, count, scalar(alpha, compute),
       scalar(beta, compute), stream);
  return result_of(handle, [&] {
    for (std::int64_t i = 0; i < count; ++i)
      multiply_item({op_a, op_b, m, n, k, alpha, beta, type_a, compute, lda, ldb, ldc}, a[i], b[i], c[i]);
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
