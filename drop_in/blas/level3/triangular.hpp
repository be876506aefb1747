// trmm and trsm, for column-major calls.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "compose.hpp"

namespace kintsugi::blas {

// The operands of trmm and trsm, transposed if A is on the right, so that A is always on the left.
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

// ------------------------------------------------------------------ trmm
// trmm. Each block of rows of the result is one product: a block of rows of A times rows of B. The block of A
// is copied, with zeros outside the triangle.

inline bool is_finite(float x) { return std::isfinite(x); }
inline bool is_finite(double x) { return std::isfinite(x); }
template <class T>
bool is_finite(const std::complex<T>& x) {
  return std::isfinite(x.real()) && std::isfinite(x.imag());
}

template <class T>
std::vector<bool> rows_with_special_values(const View<T>& b) {
  std::vector<bool> has_special_value(static_cast<std::size_t>(b.rows), false);
  const std::int64_t outer = b.is_transposed ? b.rows : b.columns;
  const std::int64_t inner = b.is_transposed ? b.columns : b.rows;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const std::int64_t row = b.is_transposed ? o : i;
      if (!is_finite(b.data[i + o * b.ld])) has_special_value[static_cast<std::size_t>(row)] = true;
    }
  }
  return has_special_value;
}

// Returns the first row of every block, followed by the order of A. A diagonal block of A is multiplied in
// full, with zeros outside the triangle. Such a zero times a NaN or an infinity of B would give a NaN that
// BLAS does not give. Therefore a row of B with a special value is the first row of its block if A is lower,
// and the last row if A is upper. Then only elements inside the triangle multiply this row.
template <class T>
std::vector<std::int64_t> block_bounds(const Triangular<T>& problem) {
  const std::vector<bool> has_special_value = rows_with_special_values(problem.b);
  const std::int64_t order = problem.b.rows;
  const std::int64_t step = block_size(order, blocks_of_triangular);
  std::vector<std::int64_t> bounds{0};
  for (std::int64_t row = 1; row < order; ++row) {
    const std::int64_t row_at_bound = problem.is_lower ? row : row - 1;
    const bool must_separate = has_special_value[static_cast<std::size_t>(row_at_bound)];
    if (row - bounds.back() == step || must_separate) bounds.push_back(row);
  }
  bounds.push_back(order);
  return bounds;
}

template <class T>
struct Buffers {
  std::unique_ptr<T[]> a;  // a block of rows of A
  std::unique_ptr<T[]> b;  // a block of rows of the result

  explicit Buffers(const View<T>& matrix) {
    const auto rows =
        static_cast<std::size_t>(std::min(block_size(matrix.rows, blocks_of_triangular), matrix.rows));
    a = std::make_unique_for_overwrite<T[]>(rows * static_cast<std::size_t>(matrix.rows));
    b = std::make_unique_for_overwrite<T[]>(rows * static_cast<std::size_t>(matrix.columns));
  }
};

// Overwrites rows first ... end - 1 of B by the result. The product reads rows of B that still have the
// caller's values, because multiply_triangular() goes through the blocks in the right order.
template <class T>
void multiply_rows(const Triangular<T>& problem, const T& alpha, std::int64_t first, std::int64_t end,
                   const Buffers<T>& buffers, Products& products) {
  const std::int64_t rows = end - first;
  const std::int64_t k_first = problem.is_lower ? 0 : first;
  const std::int64_t k_end = problem.is_lower ? end : problem.b.rows;
  const View<T> a{buffers.a.get(), rows, rows, k_end - k_first};
  for (std::int64_t j = 0; j < a.columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) a.at(i, j) = problem.value(first + i, k_first + j);
  const View<T> product{buffers.b.get(), rows, rows, problem.b.columns};
  products.multiply<T>(alpha, a, problem.b.rows_from_to(k_first, k_end), T(0), product);
  const View<T> target = problem.b.rows_from_to(first, end);
  for (std::int64_t j = 0; j < product.columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) target.at(i, j) = product.at(i, j);
}

template <class T>
void multiply_triangular(const Call& call, const T& alpha, Products& products) {
  const Triangular<T> problem(call);
  if (call.m == 0 || call.n == 0) return;
  if (alpha == T(0)) return set_to_zero(problem.b);
  const std::vector<std::int64_t> bounds = block_bounds(problem);
  const Buffers<T> buffers(problem.b);
  const std::size_t blocks = bounds.size() - 1;
  for (std::size_t step = 0; step < blocks; ++step) {
    const std::size_t block = problem.is_lower ? blocks - 1 - step : step;
    multiply_rows(problem, alpha, bounds[block], bounds[block + 1], buffers, products);
  }
}

// ------------------------------------------------------------------ trsm
// trsm. Blocks of at most 32 rows are solved by substitution, in a fixed order. Products with the solved rows
// update the right sides of unsolved rows. A is halved recursively, which gives the largest products.
// Reproducible calls use solve_by_blocks() instead.

// Blocks of 32 rows fit the first-level cache. Substitution does 32 / order of all multiplications.
constexpr std::int64_t largest_substitution = 32;

// Multiplies without the special treatment of NaN in the operator of std::complex.
template <class T>
T times(const T& x, const T& y) {
  if constexpr (is_complex_element<T>) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  } else {
    return x * y;
  }
}

// Block on the diagonal of A, copied so that its columns are contiguous. Too large for stacks of threads.
template <class T>
struct DiagonalBlock {
  std::unique_ptr<T[]> elements =
      std::make_unique_for_overwrite<T[]>(largest_substitution * largest_substitution);
  std::int64_t order = 0;
  bool is_lower = false, is_unit = false;

  void copy(const Triangular<T>& problem, std::int64_t first, std::int64_t end) {
    order = end - first;
    is_lower = problem.is_lower;
    is_unit = problem.is_unit;
    for (std::int64_t j = 0; j < order; ++j)
      for (std::int64_t i = 0; i < order; ++i) elements[i + j * order] = problem.value(first + i, first + j);
  }
  const T& at(std::int64_t i, std::int64_t j) const { return elements[i + j * order]; }
  // Row that is solved in a step. Rows first_after(row) ... end_after(row) - 1 are solved in later steps.
  std::int64_t row_of(std::int64_t step) const { return is_lower ? step : order - 1 - step; }
  std::int64_t first_after(std::int64_t row) const { return is_lower ? row + 1 : 0; }
  std::int64_t end_after(std::int64_t row) const { return is_lower ? order : row; }
};

// Solves for right sides whose columns are contiguous, one column after the other.
template <class T>
void substitute_in_columns(const DiagonalBlock<T>& block, const T& alpha, const View<T>& b) {
  for (std::int64_t j = 0; j < b.columns; ++j) {
    T* const x = b.data + j * b.ld;
    if (alpha != T(1))
      for (std::int64_t i = 0; i < block.order; ++i) x[i] = times(alpha, x[i]);
    for (std::int64_t step = 0; step < block.order; ++step) {
      const std::int64_t row = block.row_of(step);
      if (!block.is_unit) x[row] = x[row] / block.at(row, row);
      for (std::int64_t i = block.first_after(row); i < block.end_after(row); ++i)
        x[i] -= times(block.at(i, row), x[row]);
    }
  }
}

// Solves for right sides whose rows are contiguous, all columns together.
template <class T>
void substitute_in_rows(const DiagonalBlock<T>& block, const T& alpha, const View<T>& b) {
  const auto row_at = [&](std::int64_t row) { return b.data + row * b.ld; };
  if (alpha != T(1))
    for (std::int64_t i = 0; i < block.order; ++i)
      for (std::int64_t j = 0; j < b.columns; ++j) row_at(i)[j] = times(alpha, row_at(i)[j]);
  for (std::int64_t step = 0; step < block.order; ++step) {
    const std::int64_t row = block.row_of(step);
    T* const x = row_at(row);
    if (!block.is_unit)
      for (std::int64_t j = 0; j < b.columns; ++j) x[j] = x[j] / block.at(row, row);
    for (std::int64_t i = block.first_after(row); i < block.end_after(row); ++i) {
      const T factor = block.at(i, row);
      T* const y = row_at(i);
      for (std::int64_t j = 0; j < b.columns; ++j) y[j] -= times(factor, x[j]);
    }
  }
}

// Rows first ... end - 1 of A X = alpha B.
struct Rows {
  std::int64_t first, end;
  std::int64_t count() const { return end - first; }
};

template <class T>
void substitute(const Triangular<T>& problem, const T& alpha, const Rows& rows, DiagonalBlock<T>& block) {
  const View<T> b = problem.b.rows_from_to(rows.first, rows.end);
  block.copy(problem, rows.first, rows.end);
  b.is_transposed ? substitute_in_rows(block, alpha, b) : substitute_in_columns(block, alpha, b);
}

// B[unsolved] := alpha B[unsolved] - A[unsolved, solved] X[solved], where B holds X in the solved rows.
template <class T>
void update_right_sides(const Triangular<T>& problem, const Rows& solved, const T& alpha,
                        const Rows& unsolved, Products& products) {
  products.multiply<T>(T(-1), problem.a.block(unsolved.first, solved.first, unsolved.count(), solved.count()),
                       problem.b.rows_from_to(solved.first, solved.end), alpha,
                       problem.b.rows_from_to(unsolved.first, unsolved.end));
}

// Solves `rows`. Their right sides must already be updated by all rows solved before.
template <class T>
void solve_by_halves(const Triangular<T>& problem, const T& alpha, const Rows& rows, DiagonalBlock<T>& block,
                     Products& products) {
  if (rows.count() <= largest_substitution) return substitute(problem, alpha, rows, block);
  const std::int64_t middle = rows.first + rows.count() / 2;
  const Rows upper{rows.first, middle}, lower{middle, rows.end};
  const Rows &solved = problem.is_lower ? upper : lower, &unsolved = problem.is_lower ? lower : upper;
  solve_by_halves(problem, alpha, solved, block, products);
  update_right_sides(problem, solved, alpha, unsolved, products);
  solve_by_halves(problem, T(1), unsolved, block, products);
}

// Solves blocks of 32 rows in turn, each of which begins at a multiple of 32. Each solved block updates all
// unsolved rows. A caller may cut A into such blocks itself and distribute them over processes, as ScaLAPACK
// does. X then has the same bits, because the same numbers are rounded in the same order.
template <class T>
void solve_by_blocks(const Triangular<T>& problem, const T& alpha, DiagonalBlock<T>& copied,
                     Products& products) {
  const std::int64_t order = problem.b.rows;
  const std::int64_t blocks = (order + largest_substitution - 1) / largest_substitution;
  for (std::int64_t step = 0; step < blocks; ++step) {
    const std::int64_t first = largest_substitution * (problem.is_lower ? step : blocks - 1 - step);
    const Rows block{first, std::min(first + largest_substitution, order)};
    const Rows unsolved = problem.is_lower ? Rows{block.end, order} : Rows{0, block.first};
    const T factor = step == 0 ? alpha : T(1);
    substitute(problem, factor, block, copied);
    update_right_sides(problem, block, factor, unsolved, products);
  }
}

template <class T>
void solve_triangular(const Call& call, const T& alpha, Products& products) {
  const Triangular<T> problem(call);
  if (call.m == 0 || call.n == 0) return;
  if (alpha == T(0)) return set_to_zero(problem.b);
  DiagonalBlock<T> block;  // before anything is written: it may throw
  products.note_substitution();
  if (products.are_reproducible()) return solve_by_blocks(problem, alpha, block, products);
  solve_by_halves(problem, alpha, Rows{0, problem.b.rows}, block, products);
}

}  // namespace kintsugi::blas
