// symm and hemm. Both triangles of A are copied to a buffer, and one product follows.
#include <memory>

#include "compose.hpp"

namespace kintsugi::blas {

namespace {

// Fills both triangles of `full` from the stored triangle of A. For hemm the stored imaginary parts of the
// diagonal are ignored, as BLAS demands.
template <class T>
void expand_symmetric(const Call& call, const View<T>& full) {
  const bool is_hermitian = call.routine == Routine::hemm;
  const bool is_lower = call.uplo == Uplo::lower;
  const View<const T> stored = operand<T>(Op::n, call.a, call.lda, full.rows, full.columns);
  for (std::int64_t j = 0; j < full.columns; ++j) {
    for (std::int64_t i = is_lower ? j : 0; i < (is_lower ? full.rows : j + 1); ++i) {
      const T value = stored.at(i, j);
      full.at(i, j) = is_hermitian && i == j ? T(std::real(value)) : value;
      if (i != j) full.at(j, i) = is_hermitian ? conjugate(value) : value;
    }
  }
}

}  // namespace

template <class T>
void multiply_symmetric(const Call& call, const T& alpha, const T& beta, Products& products) {
  if (call.m == 0 || call.n == 0 || (alpha == T(0) && beta == T(1))) return;
  const std::int64_t order = order_of_a(call);
  std::unique_ptr<T[]> buffer;
  View<T> a{nullptr, order, order, order};
  if (alpha != T(0)) {
    buffer = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(order) *
                                                 static_cast<std::size_t>(order));
    a.data = buffer.get();
    expand_symmetric(call, a);
  }
  const View<const T> b = operand<T>(Op::n, call.b, call.ldb, call.m, call.n);
  const View<T> c{static_cast<T*>(call.c), call.ldc, call.m, call.n};
  if (call.side == Side::left) {
    products.multiply<T>(alpha, a, b, beta, c);
  } else {
    products.multiply<T>(alpha, b, a, beta, c);
  }
}

#define KINTSUGI_BLAS_INSTANTIATE(T) \
  template void multiply_symmetric<T>(const Call&, const T&, const T&, Products&);
KINTSUGI_BLAS_FOR_TYPES(KINTSUGI_BLAS_INSTANTIATE)
#undef KINTSUGI_BLAS_INSTANTIATE

}  // namespace kintsugi::blas
