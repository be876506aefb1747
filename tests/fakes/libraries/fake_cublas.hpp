// State of the fake cuBLAS, and what its functions share: handles, notes, and products on the host.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text/format_text.hpp"
#include "engines/cuda/cublas.hpp"
#include "tests/fakes/libraries/fake_cuda.hpp"

#define KINTSUGI_FAKE_BLAS extern "C" __attribute__((visibility("default")))

namespace kintsugi::fake {

using core::cuda::BlasHandle;
using core::cuda::ComputeType;
using core::cuda::Cublas;
using core::cuda::DataType;

// Numbers of cublasStatus_t.
inline constexpr int not_initialized = 1;
inline constexpr int allocation_failed = 3;
inline constexpr int invalid_value = 7;
inline constexpr int execution_failed = 13;
inline constexpr int not_supported = 15;

template <class... Values>
void note(fmt::format_string<Values...> format, Values&&... values) {
  fake_cuda_note(fmt::format(format, std::forward<Values>(values)...).c_str());
}

// A handle belongs to the context that it was made in.
struct FakeHandle {
  unsigned long long context;
  void* stream = nullptr;
  int pointer_mode = 0;
  int math_mode = 0;
  int mantissa_control = 0, mantissa_bits = 0, mantissa_offset = 0;  // of the emulation of FP64
  int* mantissa_count = nullptr;
  bool uses_default_workspace = true;  // true from cublasSetStream until cublasSetWorkspace, as in cuBLAS
  bool may_use_default_workspace = false;
  std::size_t workspace_bytes = 0;

  bool scalars_on_host() const { return pointer_mode == 0; }
};
inline FakeHandle& state_of(BlasHandle handle) { return *reinterpret_cast<FakeHandle*>(handle); }
inline bool is_elsewhere(BlasHandle handle) {
  return handle == nullptr || state_of(handle).context != fake_cuda_context();
}

inline bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string(value) != "0";
}

// As cuBLAS documents it, environment variables make it emulate products of the default compute types of FP32
// and FP64, and of no other type.
inline bool emulates(ComputeType type) {
  if (type == ComputeType::f64) return is_set("CUBLAS_EMULATE_DOUBLE_PRECISION");
  return type == ComputeType::f32 && is_set("CUBLAS_EMULATE_SINGLE_PRECISION");
}

inline bool is_wide(ComputeType type) {
  return type == ComputeType::f64 || type == ComputeType::f64_pedantic;
}

// Text of alpha or beta: its value on the host, else its address in device memory.
inline std::string scalar(const FakeHandle& handle, const void* value, ComputeType type) {
  if (!handle.scalars_on_host() || value == nullptr) return fmt::format("{}", value);
  if (is_wide(type)) return fmt::format("{}", *static_cast<const double*>(value));
  if (type == ComputeType::i32) return fmt::format("{}", *static_cast<const int*>(value));
  return fmt::format("{}", *static_cast<const float*>(value));
}

inline std::string shape(int op_a, int op_b, std::int64_t m, std::int64_t n, std::int64_t k, DataType type,
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

// Checks arguments as cuBLAS documents it.
inline bool is_valid(const Product& p, std::int64_t count) {
  const auto is_op = [](int op) { return op >= 0 && op <= 2; };
  const auto is_ld = [](std::int64_t ld, std::int64_t rows) { return ld >= std::max<std::int64_t>(1, rows); };
  return is_op(p.op_a) && is_op(p.op_b) && std::min({p.m, p.n, p.k, count}) >= 0 &&
         is_ld(p.lda, p.op_a == 0 ? p.m : p.k) && is_ld(p.ldb, p.op_b == 0 ? p.k : p.n) &&
         is_ld(p.ldc, p.m) && p.alpha != nullptr && p.beta != nullptr;
}

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

// Adds a column of A times an element of B to a column of sums. Complex products are made of their parts: a
// compiler's own looks for NaN in each.
template <class T>
void add_column(std::vector<T>& sums, const T* column, T factor) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += column[i] * factor;
}
template <class T>
void add_column(std::vector<std::complex<T>>& sums, const std::complex<T>* column, std::complex<T> factor) {
  auto* const parts = reinterpret_cast<T*>(sums.data());
  const auto* const x = reinterpret_cast<const T*>(column);
  const T real = factor.real();
  const T imaginary = factor.imag();
  for (std::size_t i = 0; i < 2 * sums.size(); i += 2) {
    parts[i] += x[i] * real - x[i + 1] * imaginary;
    parts[i + 1] += x[i] * imaginary + x[i + 1] * real;
  }
}

// Each element's sum is over all k in order. op(A) is stored contiguously before, so that tests of large
// products end soon.
template <class T>
void multiply(const Product& p, const T* a, const T* b, T* c) {
  const T alpha = *static_cast<const T*>(p.alpha);
  const T beta = *static_cast<const T*>(p.beta);
  const bool emulated = emulates(p.compute);
  const std::int64_t k = alpha == T(0) ? 0 : p.k;  // cuBLAS reads no matrix then
  std::vector<T> columns;
  columns.reserve(static_cast<std::size_t>(p.m * k));
  for (std::int64_t q = 0; q < k; ++q)
    for (std::int64_t i = 0; i < p.m; ++i) columns.push_back(element(a, p.op_a, p.lda, i, q, emulated));
  for (std::int64_t j = 0; j < p.n; ++j) {
    std::vector<T> sums(static_cast<std::size_t>(p.m));
    for (std::int64_t q = 0; q < k; ++q)
      add_column(sums, columns.data() + q * p.m, element(b, p.op_b, p.ldb, q, j, emulated));
    for (std::int64_t i = 0; i < p.m; ++i) {
      T& result = c[i + j * p.ldc];
      const T sum = sums[static_cast<std::size_t>(i)];
      result = beta == T(0) ? alpha * sum : alpha * sum + beta * result;
    }
  }
}

inline std::size_t element_bytes(DataType type) {
  return type == DataType::f32 ? 4 : type == DataType::c64 ? 16 : 8;
}

inline void multiply_item(const Product& p, const void* a, const void* b, void* c) {
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

}  // namespace kintsugi::fake
