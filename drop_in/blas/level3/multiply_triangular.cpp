// trmm. Each block of rows of the result is one product: a block of rows of A times rows of B. The block of A
// is copied, with zeros outside the triangle.
#include <cmath>
#include <memory>
#include <vector>

#include "compose.hpp"
#include "triangular.hpp"

namespace kintsugi::blas {

namespace {

bool is_finite(float x) { return std::isfinite(x); }
bool is_finite(double x) { return std::isfinite(x); }
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

}  // namespace

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

#define KINTSUGI_BLAS_INSTANTIATE(T) template void multiply_triangular<T>(const Call&, const T&, Products&);
KINTSUGI_BLAS_FOR_TYPES(KINTSUGI_BLAS_INSTANTIATE)
#undef KINTSUGI_BLAS_INSTANTIATE

}  // namespace kintsugi::blas
