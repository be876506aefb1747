// trsm. Blocks of at most 32 rows are solved by substitution, in a fixed order. Products with the solved rows
// update the right sides of unsolved rows. A is halved recursively, which gives the largest products.
// Reproducible calls use solve_by_blocks() instead.
#include <algorithm>

#include "compose.hpp"
#include "triangular.hpp"

namespace kintsugi::blas {

namespace {

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

// Block on the diagonal of A, copied so that its columns are contiguous.
template <class T>
struct DiagonalBlock {
  T elements[largest_substitution * largest_substitution];
  std::int64_t order;
  bool is_lower, is_unit;

  DiagonalBlock(const Triangular<T>& problem, std::int64_t first, std::int64_t end)
      : order(end - first), is_lower(problem.is_lower), is_unit(problem.is_unit) {
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
void substitute(const Triangular<T>& problem, const T& alpha, const Rows& rows) {
  const View<T> b = problem.b.rows_from_to(rows.first, rows.end);
  const DiagonalBlock<T> block(problem, rows.first, rows.end);
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
void solve_by_halves(const Triangular<T>& problem, const T& alpha, const Rows& rows, Products& products) {
  if (rows.count() <= largest_substitution) return substitute(problem, alpha, rows);
  const std::int64_t middle = rows.first + rows.count() / 2;
  const Rows upper{rows.first, middle}, lower{middle, rows.end};
  const Rows &solved = problem.is_lower ? upper : lower, &unsolved = problem.is_lower ? lower : upper;
  solve_by_halves(problem, alpha, solved, products);
  update_right_sides(problem, solved, alpha, unsolved, products);
  solve_by_halves(problem, T(1), unsolved, products);
}

// Solves blocks of 32 rows in turn, each of which begins at a multiple of 32. Each solved block updates all
// unsolved rows. A caller may cut A into such blocks itself and distribute them over processes, as ScaLAPACK
// does. X then has the same bits, because the same numbers are rounded in the same order.
template <class T>
void solve_by_blocks(const Triangular<T>& problem, const T& alpha, Products& products) {
  const std::int64_t order = problem.b.rows;
  const std::int64_t blocks = (order + largest_substitution - 1) / largest_substitution;
  for (std::int64_t step = 0; step < blocks; ++step) {
    const std::int64_t first = largest_substitution * (problem.is_lower ? step : blocks - 1 - step);
    const Rows block{first, std::min(first + largest_substitution, order)};
    const Rows unsolved = problem.is_lower ? Rows{block.end, order} : Rows{0, block.first};
    const T factor = step == 0 ? alpha : T(1);
    substitute(problem, factor, block);
    update_right_sides(problem, block, factor, unsolved, products);
  }
}

}  // namespace

template <class T>
void solve_triangular(const Call& call, const T& alpha, Products& products) {
  const Triangular<T> problem(call);
  if (call.m == 0 || call.n == 0) return;
  if (alpha == T(0)) return set_to_zero(problem.b);
  products.note_substitution();
  if (products.are_reproducible()) return solve_by_blocks(problem, alpha, products);
  solve_by_halves(problem, alpha, Rows{0, problem.b.rows}, products);
}

#define KINTSUGI_BLAS_INSTANTIATE(T) template void solve_triangular<T>(const Call&, const T&, Products&);
KINTSUGI_BLAS_FOR_TYPES(KINTSUGI_BLAS_INSTANTIATE)
#undef KINTSUGI_BLAS_INSTANTIATE

}  // namespace kintsugi::blas
