// Level-3 routines of the fake cuBLAS other than products. They check their arguments as cuBLAS documents it,
// note their names, and compute element by element under FAKE_CUDA_MULTIPLY.
#include <cstdint>

#include "kintsugi/kintsugi.h"
#include "tests/fakes/libraries/fake_cublas.hpp"

namespace {

using namespace kintsugi::fake;

enum class Routine { syrk, herk, syr2k, her2k, syrkx, herkx, symm, hemm, trmm, trsm };

struct Call {
  Routine routine;
  int type;
  int side, uplo, op, diag;
  std::int64_t m, n, k;
  const void* alpha;
  const void* a;
  std::int64_t lda;
  const void* b;
  std::int64_t ldb;
  const void* beta;
  void* c;
  std::int64_t ldc;

  bool is_update() const { return routine <= Routine::herkx; }
  bool has_two_products() const { return routine == Routine::syr2k || routine == Routine::her2k; }
  bool is_hermitian() const {
    return routine == Routine::herk || routine == Routine::her2k || routine == Routine::herkx ||
           routine == Routine::hemm;
  }
  bool is_lower() const { return uplo == 0; }
  bool is_complex() const { return type == KINTSUGI_C32 || type == KINTSUGI_C64; }
};

template <class T>
T real_part(T x) {
  return std::real(x);
}

template <class T>
struct Of {
  using Real = T;
};
template <class T>
struct Of<std::complex<T>> {
  using Real = T;
};

// alpha of herk is real, and beta of all hermitian updates.
template <class T>
T scalar_of(const Call& call, const void* pointer) {
  if (pointer == nullptr) return T(0);
  if (call.routine == Routine::herk || (pointer == call.beta && call.is_update() && call.is_hermitian()))
    return T(*static_cast<const typename Of<T>::Real*>(pointer));
  return *static_cast<const T*>(pointer);
}

template <class T>
void update(const Call& call) {
  const T* a = static_cast<const T*>(call.a);
  T* c = static_cast<T*>(call.c);
  const T alpha = scalar_of<T>(call, call.alpha), beta = scalar_of<T>(call, call.beta);
  const T* b = call.b != nullptr ? static_cast<const T*>(call.b) : a;
  const std::int64_t ldb = call.b != nullptr ? call.ldb : call.lda;
  const auto product = [&](const T* x, std::int64_t ld_x, std::int64_t i, const T* y, std::int64_t ld_y,
                           std::int64_t j, std::int64_t p) {
    const T left = call.op == 0 ? x[i + p * ld_x] : x[p + i * ld_x];
    const T right = call.op == 0 ? y[j + p * ld_y] : y[p + j * ld_y];
    if (!call.is_hermitian()) return left * right;
    return call.op == 0 ? left * conjugate(right) : conjugate(left) * right;
  };
  const T other_alpha = !call.has_two_products() ? T(0) : call.is_hermitian() ? conjugate(alpha) : alpha;
  for (std::int64_t j = 0; j < call.n; ++j) {
    for (std::int64_t i = call.is_lower() ? j : 0; i < (call.is_lower() ? call.n : j + 1); ++i) {
      T sum = 0, other_sum = 0;
      for (std::int64_t p = 0; p < call.k && alpha != T(0); ++p) {
        sum += product(a, call.lda, i, b, ldb, j, p);
        if (call.has_two_products()) other_sum += product(b, ldb, i, a, call.lda, j, p);
      }
      const T both = alpha * sum + other_alpha * other_sum;
      T& result = c[i + j * call.ldc];
      const T old = call.is_hermitian() && i == j ? real_part(result) : result;
      result = beta == T(0) ? both : both + beta * old;
      if (call.is_hermitian() && i == j) result = real_part(result);
    }
  }
}

template <class T>
T of_symmetric(const Call& call, std::int64_t i, std::int64_t j) {
  const T* a = static_cast<const T*>(call.a);
  const bool is_stored = call.is_lower() ? i >= j : i <= j;
  const T value = is_stored ? a[i + j * call.lda] : a[j + i * call.lda];
  if (!call.is_hermitian()) return value;
  return i == j ? real_part(value) : is_stored ? value : conjugate(value);
}

template <class T>
void multiply_symmetric(const Call& call) {
  const T* b = static_cast<const T*>(call.b);
  T* c = static_cast<T*>(call.c);
  const T alpha = scalar_of<T>(call, call.alpha), beta = scalar_of<T>(call, call.beta);
  const std::int64_t order = call.side == 0 ? call.m : call.n;
  for (std::int64_t j = 0; j < call.n; ++j) {
    for (std::int64_t i = 0; i < call.m; ++i) {
      T sum = 0;
      for (std::int64_t p = 0; p < order && alpha != T(0); ++p)
        sum += call.side == 0 ? of_symmetric<T>(call, i, p) * b[p + j * call.ldb]
                              : b[i + p * call.ldb] * of_symmetric<T>(call, p, j);
      T& result = c[i + j * call.ldc];
      result = beta == T(0) ? alpha * sum : alpha * sum + beta * result;
    }
  }
}

// Element (i, j) of op(A) in equations with A on the left, of its transpose for A on the right.
template <class T>
T of_triangle(const Call& call, std::int64_t i, std::int64_t j) {
  const T* a = static_cast<const T*>(call.a);
  const bool transposes = (call.op != 0) != (call.side == 1);
  const T value = transposes ? a[j + i * call.lda] : a[i + j * call.lda];
  return call.op == 2 ? conjugate(value) : value;
}

template <class T>
void solve(const Call& call) {
  T* c = static_cast<T*>(call.c);
  const T alpha = scalar_of<T>(call, call.alpha);
  const bool is_left = call.side == 0;
  const std::int64_t order = is_left ? call.m : call.n, count = is_left ? call.n : call.m;
  const bool is_lower = call.is_lower() != ((call.op != 0) != !is_left);
  for (std::int64_t s = 0; s < count; ++s) {
    const auto x = [&](std::int64_t i) -> T& { return is_left ? c[i + s * call.ldc] : c[s + i * call.ldc]; };
    for (std::int64_t step = 0; step < order; ++step) {
      const std::int64_t i = is_lower ? step : order - 1 - step;
      T value = alpha == T(0) ? T(0) : alpha * x(i);
      for (std::int64_t q = 0; q < step && alpha != T(0); ++q) {
        const std::int64_t j = is_lower ? q : order - 1 - q;
        value -= of_triangle<T>(call, i, j) * x(j);
      }
      x(i) = call.diag == 1 || alpha == T(0) ? value : value / of_triangle<T>(call, i, i);
    }
  }
}

// Computes a copy of C first, since C may be B.
template <class T>
void multiply_triangular(const Call& call) {
  const T* b = static_cast<const T*>(call.b);
  T* c = static_cast<T*>(call.c);
  const T alpha = scalar_of<T>(call, call.alpha);
  const bool is_left = call.side == 0;
  const std::int64_t order = is_left ? call.m : call.n;
  const bool is_lower = call.is_lower() != ((call.op != 0) != !is_left);
  std::vector<T> results;
  for (std::int64_t j = 0; j < call.n; ++j) {
    for (std::int64_t i = 0; i < call.m; ++i) {
      const std::int64_t row = is_left ? i : j;
      T sum = 0;
      for (std::int64_t p = 0; p < order && alpha != T(0); ++p) {
        if (is_lower ? p > row : p < row) continue;
        const T factor = p == row && call.diag == 1 ? T(1) : of_triangle<T>(call, row, p);
        sum += factor * (is_left ? b[p + j * call.ldb] : b[i + p * call.ldb]);
      }
      results.push_back(alpha == T(0) ? T(0) : alpha * sum);
    }
  }
  for (std::int64_t j = 0; j < call.n; ++j)
    std::copy_n(results.begin() + j * call.m, call.m, c + j * call.ldc);
}

template <class T>
void compute(const Call& call) {
  if (call.is_update()) return update<T>(call);
  if (call.routine == Routine::trmm) return multiply_triangular<T>(call);
  return call.routine == Routine::trsm ? solve<T>(call) : multiply_symmetric<T>(call);
}

bool has_valid_arguments(const Call& call) {
  const auto is_ld = [](std::int64_t ld, std::int64_t rows) { return ld >= std::max<std::int64_t>(1, rows); };
  const bool is_hermitian_update = call.is_update() && call.is_hermitian();
  const int last_op = call.is_update() && !is_hermitian_update && call.is_complex() ? 1 : 2;
  const bool is_op = call.op >= 0 && call.op <= last_op && !(is_hermitian_update && call.op == 1);
  const std::int64_t order = call.side == 0 ? call.m : call.n;
  const std::int64_t rows_of_a = !call.is_update() ? order : call.op == 0 ? call.n : call.k;
  const bool has_modes = call.side >= 0 && call.side <= 1 && call.uplo >= 0 && call.uplo <= 1 &&
                         call.diag >= 0 && call.diag <= 1 && is_op;
  return has_modes && std::min({call.m, call.n, call.k}) >= 0 && is_ld(call.lda, rows_of_a) &&
         is_ld(call.ldc, call.m) &&
         (call.b == nullptr || is_ld(call.ldb, call.is_update() ? rows_of_a : call.m)) &&
         call.alpha != nullptr && (call.routine >= Routine::trmm || call.beta != nullptr);
}

int answer(const char* name, BlasHandle handle, const Call& call) {
  if (handle == nullptr) return not_initialized;
  note("{} side={} uplo={} op={} diag={} m={} n={} k={} stream={}", name, call.side, call.uplo, call.op,
       call.diag, call.m, call.n, call.k, state_of(handle).stream);
  if (!has_valid_arguments(call)) return invalid_value;
  if (!is_set("FAKE_CUDA_MULTIPLY")) return 0;
  switch (call.type) {
    case KINTSUGI_F32: compute<float>(call); break;
    case KINTSUGI_F64: compute<double>(call); break;
    case KINTSUGI_C32: compute<std::complex<float>>(call); break;
    default: compute<std::complex<double>>(call);
  }
  return 0;
}

}  // namespace

#define KINTSUGI_CUBLAS_UPDATE(type_, integer, routine, symbol_)                                           \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int uplo, int op, integer n, integer k,                \
                                 const void* alpha, const void* a, integer lda, const void* beta, void* c, \
                                 integer ldc) {                                                            \
    return answer(                                                                                         \
        #symbol_, handle,                                                                                  \
        {Routine::routine, type_, 0, uplo, op, 0, n, n, k, alpha, a, lda, nullptr, 1, beta, c, ldc});      \
  }
#define KINTSUGI_CUBLAS_UPDATE_WITH_B(type_, integer, routine, symbol_)                                     \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int uplo, int op, integer n, integer k,                 \
                                 const void* alpha, const void* a, integer lda, const void* b, integer ldb, \
                                 const void* beta, void* c, integer ldc) {                                  \
    return answer(#symbol_, handle,                                                                         \
                  {Routine::routine, type_, 0, uplo, op, 0, n, n, k, alpha, a, lda, b, ldb, beta, c, ldc}); \
  }
#define KINTSUGI_CUBLAS_TRIANGULAR(type_, integer, symbol_)                                               \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int side, int uplo, int op, int diag, integer m,      \
                                 integer n, const void* alpha, const void* a, integer lda, const void* b, \
                                 integer ldb, void* c, integer ldc) {                                     \
    return answer(                                                                                        \
        #symbol_, handle,                                                                                 \
        {Routine::trmm, type_, side, uplo, op, diag, m, n, 0, alpha, a, lda, b, ldb, nullptr, c, ldc});   \
  }
#define KINTSUGI_CUBLAS_SYMMETRIC(type_, integer, routine, symbol_)                                         \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int side, int uplo, integer m, integer n,               \
                                 const void* alpha, const void* a, integer lda, const void* b, integer ldb, \
                                 const void* beta, void* c, integer ldc) {                                  \
    return answer(                                                                                          \
        #symbol_, handle,                                                                                   \
        {Routine::routine, type_, side, uplo, 0, 0, m, n, 0, alpha, a, lda, b, ldb, beta, c, ldc});         \
  }
#define KINTSUGI_CUBLAS_SOLVE(type_, integer, symbol_)                                                      \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, int side, int uplo, int op, int diag, integer m,        \
                                 integer n, const void* alpha, const void* a, integer lda, void* b,         \
                                 integer ldb) {                                                             \
    return answer(                                                                                          \
        #symbol_, handle,                                                                                   \
        {Routine::trsm, type_, side, uplo, op, diag, m, n, 0, alpha, a, lda, nullptr, 1, nullptr, b, ldb}); \
  }
#include "drop_in/cublas/symbols.def"
