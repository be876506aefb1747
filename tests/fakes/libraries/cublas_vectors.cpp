// Routines with vectors of the fake cuBLAS, and functions that copy triangles. They check their arguments as
// cuBLAS documents it, note their names, and compute element by element under FAKE_CUDA_MULTIPLY.
#include <cstdint>

#include "kintsugi/kintsugi.h"
#include "tests/fakes/libraries/fake_cublas.hpp"

namespace {

using namespace kintsugi::fake;

enum class Routine { symv, hemv };

// Element i of a vector of that length; a negative increment begins at the end.
template <class T>
T& at(T* data, std::int64_t length, std::int64_t increment, std::int64_t i) {
  return data[increment < 0 ? (i - length + 1) * increment : i * increment];
}

template <class Function>
void as_type(int type, const Function& function) {
  switch (type) {
    case KINTSUGI_F32: return function(float{});
    case KINTSUGI_F64: return function(double{});
    case KINTSUGI_C32: return function(std::complex<float>{});
    default: return function(std::complex<double>{});
  }
}

// y := alpha A x + beta y, where element(i, l) is an element of A.
template <class T, class Element>
void multiply_vector(const Element& element, std::int64_t rows, std::int64_t columns,
                     const void* alpha_pointer, const void* x, std::int64_t incx, const void* beta_pointer,
                     void* y, std::int64_t incy) {
  const T alpha = *static_cast<const T*>(alpha_pointer), beta = *static_cast<const T*>(beta_pointer);
  for (std::int64_t i = 0; i < rows; ++i) {
    T sum = 0;
    for (std::int64_t l = 0; l < columns && alpha != T(0); ++l)
      sum += element(i, l) * at(static_cast<const T*>(x), columns, incx, l);
    T& result = at(static_cast<T*>(y), rows, incy, i);
    result = beta == T(0) ? alpha * sum : alpha * sum + beta * result;
  }
}

struct Gemv {
  int type, op;
  std::int64_t m, n;
  const void* alpha;
  std::int64_t lda, incx;
  const void* beta;
  std::int64_t incy, count;

  bool is_valid() const {
    return op >= 0 && op <= 2 && m >= 0 && n >= 0 && count >= 0 && lda >= std::max<std::int64_t>(1, m) &&
           incx != 0 && incy != 0 && alpha != nullptr && beta != nullptr;
  }
  void multiply(const void* a, const void* x, void* y) const {
    if (m == 0 || n == 0) return;
    as_type(type, [&]<class T>(T) {
      const auto get = [&](std::int64_t i, std::int64_t l) {
        return element(static_cast<const T*>(a), op, lda, i, l, false);
      };
      multiply_vector<T>(get, op == 0 ? m : n, op == 0 ? n : m, alpha, x, incx, beta, y, incy);
    });
  }
};

template <class Multiply>
int answer_gemv(const char* name, BlasHandle handle, const Gemv& call, const Multiply& multiply) {
  if (handle == nullptr) return not_initialized;
  note("{} op={} m={} n={} count={} stream={}", name, call.op, call.m, call.n, call.count,
       state_of(handle).stream);
  if (!call.is_valid()) return invalid_value;
  for (std::int64_t i = 0; i < call.count && is_set("FAKE_CUDA_MULTIPLY"); ++i) multiply(i);
  return 0;
}

template <class T>
T of_symmetric(const T* a, bool is_lower, bool is_hermitian, std::int64_t lda, std::int64_t i,
               std::int64_t j) {
  const bool is_stored = is_lower ? i >= j : i <= j;
  const T value = is_stored ? a[i + j * lda] : a[j + i * lda];
  if (!is_hermitian) return value;
  return i == j ? T(std::real(value)) : is_stored ? value : conjugate(value);
}

int answer_symv(const char* name, BlasHandle handle, Routine routine, int type, int uplo, std::int64_t n,
                const void* alpha, const void* a, std::int64_t lda, const void* x, std::int64_t incx,
                const void* beta, void* y, std::int64_t incy) {
  if (handle == nullptr) return not_initialized;
  note("{} uplo={} n={} stream={}", name, uplo, n, state_of(handle).stream);
  if (uplo < 0 || uplo > 1 || n < 0 || lda < std::max<std::int64_t>(1, n) || incx == 0 || incy == 0 ||
      alpha == nullptr || beta == nullptr)
    return invalid_value;
  if (!is_set("FAKE_CUDA_MULTIPLY")) return 0;
  as_type(type, [&]<class T>(T) {
    const auto get = [&](std::int64_t i, std::int64_t l) {
      return of_symmetric(static_cast<const T*>(a), uplo == 0, routine == Routine::hemv, lda, i, l);
    };
    multiply_vector<T>(get, n, n, alpha, x, incx, beta, y, incy);
  });
  return 0;
}

int answer_ger(const char* name, BlasHandle handle, int type, bool is_conjugated, std::int64_t m,
               std::int64_t n, const void* alpha, const void* x, std::int64_t incx, const void* y,
               std::int64_t incy, void* a, std::int64_t lda) {
  if (handle == nullptr) return not_initialized;
  note("{} m={} n={} stream={}", name, m, n, state_of(handle).stream);
  if (m < 0 || n < 0 || incx == 0 || incy == 0 || lda < std::max<std::int64_t>(1, m) || alpha == nullptr)
    return invalid_value;
  if (!is_set("FAKE_CUDA_MULTIPLY")) return 0;
  as_type(type, [&]<class T>(T) {
    if (*static_cast<const T*>(alpha) == T(0)) return;
    for (std::int64_t j = 0; j < n; ++j) {
      const T right = at(static_cast<const T*>(y), n, incy, j);
      for (std::int64_t i = 0; i < m; ++i)
        static_cast<T*>(a)[i + j * lda] += *static_cast<const T*>(alpha) *
                                           at(static_cast<const T*>(x), m, incx, i) *
                                           (is_conjugated ? conjugate(right) : right);
    }
  });
  return 0;
}

int answer_dot(const char* name, BlasHandle handle, int type, bool is_conjugated, std::int64_t n,
               const void* x, std::int64_t incx, const void* y, std::int64_t incy, void* result) {
  if (handle == nullptr) return not_initialized;
  note("{} n={} stream={}", name, n, state_of(handle).stream);
  if (result == nullptr) return invalid_value;
  if (!is_set("FAKE_CUDA_MULTIPLY")) return 0;
  as_type(type, [&]<class T>(T) {
    T sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const T left = at(static_cast<const T*>(x), n, incx, i);
      sum += (is_conjugated ? conjugate(left) : left) * at(static_cast<const T*>(y), n, incy, i);
    }
    *static_cast<T*>(result) = sum;
  });
  return 0;
}

// B is not read, since beta must be 0 here.
template <class T>
int transpose(BlasHandle handle, int op, int m, int n, const T* alpha, const T* a, int lda, const T* beta,
              T* c, int ldc) {
  if (handle == nullptr || *beta != T(0)) return invalid_value;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) c[i + j * ldc] = *alpha * element(a, op, lda, i, j, false);
  return 0;
}

// Calls function(packed element, element) for the elements of a triangle.
template <class Packed, class Matrix, class Function>
void for_triangle(int uplo, int n, Packed* packed, Matrix* a, int lda, const Function& function) {
  for (int j = 0; j < n; ++j)
    for (int i = uplo == 0 ? j : 0; i < (uplo == 0 ? n : j + 1); ++i) function(*packed++, a[i + j * lda]);
}

}  // namespace

#define KINTSUGI_CUBLAS_GEMV(type_, integer, symbol_)                                                       \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int op, integer m, integer n, const void* alpha,        \
                                 const void* a, integer lda, const void* x, integer incx, const void* beta, \
                                 void* y, integer incy) {                                                   \
    const Gemv call{type_, op, m, n, alpha, lda, incx, beta, incy, 1};                                      \
    return answer_gemv(#symbol_, handle, call, [&](std::int64_t) { call.multiply(a, x, y); });              \
  }
#define KINTSUGI_CUBLAS_GEMV_BATCHED(type_, integer, symbol_)                                             \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int op, integer m, integer n, const void* alpha,      \
                                 const void* const* a, integer lda, const void* const* x, integer incx,   \
                                 const void* beta, void* const* y, integer incy, integer count) {         \
    const Gemv call{type_, op, m, n, alpha, lda, incx, beta, incy, count};                                \
    return answer_gemv(#symbol_, handle, call, [&](std::int64_t i) { call.multiply(a[i], x[i], y[i]); }); \
  }
#define KINTSUGI_CUBLAS_GEMV_STRIDED(type_, integer, symbol_)                                               \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int op, integer m, integer n, const void* alpha,        \
                                 const void* a, integer lda, long long stride_a, const void* x,             \
                                 integer incx, long long stride_x, const void* beta, void* y, integer incy, \
                                 long long stride_y, integer count) {                                       \
    const Gemv call{type_, op, m, n, alpha, lda, incx, beta, incy, count};                                  \
    constexpr std::int64_t bytes = type_ == KINTSUGI_F32 ? 4 : type_ == KINTSUGI_C64 ? 16 : 8;              \
    return answer_gemv(#symbol_, handle, call, [&](std::int64_t i) {                                        \
      call.multiply(static_cast<const char*>(a) + i * stride_a * bytes,                                     \
                    static_cast<const char*>(x) + i * stride_x * bytes,                                     \
                    static_cast<char*>(y) + i * stride_y * bytes);                                          \
    });                                                                                                     \
  }
#define KINTSUGI_CUBLAS_SYMV(type_, integer, routine, symbol_)                                              \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int uplo, integer n, const void* alpha, const void* a,  \
                                 integer lda, const void* x, integer incx, const void* beta, void* y,       \
                                 integer incy) {                                                            \
    return answer_symv(#symbol_, handle, Routine::routine, type_, uplo, n, alpha, a, lda, x, incx, beta, y, \
                       incy);                                                                               \
  }
#define KINTSUGI_CUBLAS_GER(type_, integer, op, symbol_)                                                    \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, integer m, integer n, const void* alpha, const void* x, \
                                 integer incx, const void* y, integer incy, void* a, integer lda) {         \
    return answer_ger(#symbol_, handle, type_, #op[0] == 'c', m, n, alpha, x, incx, y, incy, a, lda);       \
  }
#define KINTSUGI_CUBLAS_DOT(type_, integer, op, symbol_)                                                   \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, integer n, const void* x, integer incx, const void* y, \
                                 integer incy, void* result) {                                             \
    return answer_dot(#symbol_, handle, type_, #op[0] == 'c', n, x, incx, y, incy, result);                \
  }
#include "drop_in/cublas/symbols.def"

#define TRIANGLES(letter, T)                                                                                \
  KINTSUGI_FAKE_BLAS int cublas##letter##geam(BlasHandle handle, int op_a, int, int m, int n,               \
                                              const T* alpha, const T* a, int lda, const T* beta, const T*, \
                                              int, T* c, int ldc) {                                         \
    return transpose(handle, op_a, m, n, alpha, a, lda, beta, c, ldc);                                      \
  }                                                                                                         \
  KINTSUGI_FAKE_BLAS int cublas##letter##trttp(BlasHandle, int uplo, int n, const T* a, int lda,            \
                                               T* packed) {                                                 \
    for_triangle(uplo, n, packed, a, lda, [](T& place, const T& x) { place = x; });                         \
    return 0;                                                                                               \
  }                                                                                                         \
  KINTSUGI_FAKE_BLAS int cublas##letter##tpttr(BlasHandle, int uplo, int n, const T* packed, T* a,          \
                                               int lda) {                                                   \
    for_triangle(uplo, n, packed, a, lda, [](const T& x, T& place) { place = x; });                         \
    return 0;                                                                                               \
  }
TRIANGLES(S, float)
TRIANGLES(D, double)
TRIANGLES(C, std::complex<float>)
TRIANGLES(Z, std::complex<double>)
