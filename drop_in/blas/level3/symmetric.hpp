// Routines with a symmetric or Hermitian matrix, and gemmt, for column-major calls.
#pragma once

#include <memory>

#include "compose.hpp"

namespace kintsugi::blas {

// ------------------------------------------------------------------ one triangle of C
// Routines that write one triangle of C: gemmt, syrk, herk, syr2k, her2k. C is cut into block columns. The
// diagonal block of a column is computed in a buffer, since the other triangle of C must be neither read nor
// written. The other blocks of the column are one product.

template <class T>
struct Triangle {
  View<T> c;  // n x n
  bool is_lower;
  bool is_hermitian;

  bool has(std::int64_t i, std::int64_t j) const { return is_lower ? i >= j : i <= j; }
  T value(std::int64_t i, std::int64_t j) const {
    return is_hermitian && i == j ? T(std::real(c.at(i, j))) : c.at(i, j);
  }
};

// Copies the diagonal block that begins at row and column `first`. The other triangle of `block` becomes
// zero.
template <class T>
void copy_diagonal_block(const Triangle<T>& triangle, std::int64_t first, const View<T>& block) {
  for (std::int64_t j = 0; j < block.columns; ++j)
    for (std::int64_t i = 0; i < block.rows; ++i)
      block.at(i, j) = triangle.has(i, j) ? triangle.value(first + i, first + j) : T(0);
}

// Copies the triangle of `block` to the diagonal block of C that begins at row and column `first`.
template <class T>
void put_diagonal_block(const View<T>& block, std::int64_t first, const Triangle<T>& triangle) {
  for (std::int64_t j = 0; j < block.columns; ++j)
    for (std::int64_t i = 0; i < block.rows; ++i) {
      if (!triangle.has(i, j)) continue;
      const bool is_real = triangle.is_hermitian && i == j;
      triangle.c.at(first + i, first + j) = is_real ? T(std::real(block.at(i, j))) : block.at(i, j);
    }
}

// Computes the triangle of C := alpha A B + beta C. `buffer` has room for one diagonal block.
template <class T>
void update(const Triangle<T>& triangle, const T& alpha, const View<const T>& a, const View<const T>& b,
            const T& beta, T* buffer, Products& products) {
  const std::int64_t n = triangle.c.rows;
  const std::int64_t step = block_size(n, blocks_of_update);
  for (std::int64_t first = 0; first < n; first += step) {
    const std::int64_t end = std::min(first + step, n);
    const View<const T> b_columns = b.columns_from_to(first, end);
    const View<T> block{buffer, end - first, end - first, end - first};
    if (beta != T(0)) copy_diagonal_block(triangle, first, block);
    products.multiply(alpha, a.rows_from_to(first, end), b_columns, beta, block);
    put_diagonal_block(block, first, triangle);
    const std::int64_t rest_begin = triangle.is_lower ? end : 0;
    const std::int64_t rest_end = triangle.is_lower ? n : first;
    products.multiply(alpha, a.rows_from_to(rest_begin, rest_end), b_columns, beta,
                      triangle.c.block(rest_begin, first, rest_end - rest_begin, end - first));
  }
}

template <class T>
std::unique_ptr<T[]> new_diagonal_block(std::int64_t n) {
  const auto side = static_cast<std::size_t>(std::min(block_size(n, blocks_of_update), n));
  return std::make_unique_for_overwrite<T[]>(side * side);
}

template <class T>
Triangle<T> triangle_of(const Call& call) {
  return {{static_cast<T*>(call.c), call.ldc, call.n, call.n},
          call.uplo == Uplo::lower,
          is_hermitian(call.routine)};
}

// Returns the op of the second operand of a rank-k update, which transposes what op_a leaves.
inline Op op_of_second_operand(const Call& call) {
  if (call.op_a != Op::n) return Op::n;
  return is_hermitian(call.routine) ? Op::c : Op::t;
}

template <class T>
bool leaves_c(const Call& call, const T& alpha, const T& beta) {
  return call.n == 0 || ((alpha == T(0) || call.k == 0) && beta == T(1));
}

template <class T>
void update_triangle(const Call& call, const T& alpha, const T& beta, Products& products) {
  if (leaves_c(call, alpha, beta)) return;
  const auto buffer = new_diagonal_block<T>(call.n);
  const View<const T> a = operand<T>(call.op_a, call.a, call.lda, call.n, call.k);
  const View<const T> b = call.routine == Routine::gemmt
                              ? operand<T>(call.op_b, call.b, call.ldb, call.k, call.n)
                              : operand<T>(op_of_second_operand(call), call.a, call.lda, call.k, call.n);
  update(triangle_of<T>(call), alpha, a, b, beta, buffer.get(), products);
}

template <class T>
void update_triangle_twice(const Call& call, const T& alpha, const T& beta, Products& products) {
  if (leaves_c(call, alpha, beta)) return;
  const auto buffer = new_diagonal_block<T>(call.n);
  const Triangle<T> triangle = triangle_of<T>(call);
  const auto left = [&](const void* data, std::int64_t ld) {
    return operand<T>(call.op_a, data, ld, call.n, call.k);
  };
  const auto right = [&](const void* data, std::int64_t ld) {
    return operand<T>(op_of_second_operand(call), data, ld, call.k, call.n);
  };
  update(triangle, alpha, left(call.a, call.lda), right(call.b, call.ldb), beta, buffer.get(), products);
  if (alpha == T(0) || call.k == 0) return;
  const T second_alpha = triangle.is_hermitian ? conjugate(alpha) : alpha;
  update(triangle, second_alpha, left(call.b, call.ldb), right(call.a, call.lda), T(1), buffer.get(),
         products);
}

// ------------------------------------------------------------------ one triangle of A
// symm and hemm. Both triangles of A are copied to a buffer, and one product follows.

// Fills both triangles of `full` from the stored triangle of A. For hemm the stored imaginary parts of the
// diagonal are ignored, as BLAS demands.
template <class T>
void expand_symmetric(const Call& call, const View<T>& full) {
  const bool is_conjugated = is_hermitian(call.routine);
  const bool is_lower = call.uplo == Uplo::lower;
  const View<const T> stored = operand<T>(Op::n, call.a, call.lda, full.rows, full.columns);
  for (std::int64_t j = 0; j < full.columns; ++j) {
    for (std::int64_t i = is_lower ? j : 0; i < (is_lower ? full.rows : j + 1); ++i) {
      const T value = stored.at(i, j);
      full.at(i, j) = is_conjugated && i == j ? T(std::real(value)) : value;
      if (i != j) full.at(j, i) = is_conjugated ? conjugate(value) : value;
    }
  }
}

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

}  // namespace kintsugi::blas
