// The operands of trmm and trsm, transposed if A is on the right, so that A is always on the left.
#pragma once

#include "view.hpp"

namespace kintsugi::blas {

template <class T>
struct Triangular {
  View<const T> a;  // op(A), or its transpose if A is on the right; order x order
  View<T> b;        // B, or its transpose if A is on the right; order x columns
  bool is_lower;    // true if the view `a` is a lower triangle
  bool is_unit;

  explicit Triangular(const Call& call)
      : a(operand<T>(call.op_a, call.a, call.lda, order_of_a(call), order_of_a(call))),
        b{static_cast<T*>(call.c), call.ldc, call.m, call.n},  // Call::c is the matrix that is written
        is_lower((call.uplo == Uplo::lower) == (call.op_a == Op::n)), is_unit(call.diag == Diag::unit) {
    if (call.side == Side::left) return;
    a = a.transposed();
    b = b.transposed();
    is_lower = !is_lower;
  }

  // Returns an element of the triangular matrix. Memory outside the triangle is not read, and the diagonal is
  // not read if it is a unit diagonal.
  T value(std::int64_t i, std::int64_t j) const {
    if (i == j && is_unit) return T(1);
    return (is_lower ? i >= j : i <= j) ? a.value(i, j) : T(0);
  }
};

template <class T>
void set_to_zero(const View<T>& matrix) {
  const View<T> columns = matrix.is_transposed ? matrix.transposed() : matrix;
  for (std::int64_t j = 0; j < columns.columns; ++j)
    for (std::int64_t i = 0; i < columns.rows; ++i) columns.at(i, j) = T(0);
}

}  // namespace kintsugi::blas
