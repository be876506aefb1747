// trsm: halves of A by recursion. The second half's right sides are updated by one product with the first
// half's solution; blocks of at most 32 rows are solved by substitution, in a fixed order.
#include "compose.hpp"
#include "triangular.hpp"

namespace kintsugi::blas {

namespace {

// Substitution takes 32 / order of all multiplications, and a block fits the first-level cache.
constexpr std::int64_t largest_substitution = 32;

// Multiplies real and imaginary parts without the repair of NaN that std::complex's operator does.
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
  // Row whose unknown a step computes. Rows first_after(row) ... end_after(row) - 1 are still unsolved, and
  // its product is subtracted from them.
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

// Solves A X = alpha B for rows [first, end), of which the right sides hold everything that earlier rows add.
template <class T>
void solve(const Triangular<T>& problem, const T& alpha, std::int64_t first, std::int64_t end,
           Products& products) {
  const View<T> b = problem.b.rows_from_to(first, end);
  if (end - first <= largest_substitution) {
    const DiagonalBlock<T> block(problem, first, end);
    return b.is_transposed ? substitute_in_rows(block, alpha, b) : substitute_in_columns(block, alpha, b);
  }
  const std::int64_t middle = first + (end - first) / 2;
  const std::int64_t begin_1 = problem.is_lower ? first : middle, end_1 = problem.is_lower ? middle : end;
  const std::int64_t begin_2 = problem.is_lower ? middle : first, end_2 = problem.is_lower ? end : middle;
  solve(problem, alpha, begin_1, end_1, products);
  products.multiply<T>(T(-1), problem.a.block(begin_2, begin_1, end_2 - begin_2, end_1 - begin_1),
                       problem.b.rows_from_to(begin_1, end_1), alpha, problem.b.rows_from_to(begin_2, end_2));
  solve(problem, T(1), begin_2, end_2, products);
}

}  // namespace

template <class T>
void solve_triangular(const Call& call, const T& alpha, Products& products) {
  const Triangular<T> problem(call);
  if (call.m == 0 || call.n == 0) return;
  if (alpha == T(0)) return set_to_zero(problem.b);
  products.note_substitution();
  solve(problem, alpha, 0, problem.b.rows, products);
}

#define KINTSUGI_BLAS_INSTANTIATE(T) template void solve_triangular<T>(const Call&, const T&, Products&);
KINTSUGI_BLAS_FOR_TYPES(KINTSUGI_BLAS_INSTANTIATE)
#undef KINTSUGI_BLAS_INSTANTIATE

}  // namespace kintsugi::blas
