#include <algorithm>
#include <cmath>
#include <numeric>

#include "lab/reproduce/programs/programs.hpp"

namespace kintsugi::tools::programs {

namespace {

using Vector = std::vector<double>;

constexpr std::int64_t block = 32;

double dot(const Vector& x, const Vector& y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

void add_multiple(Vector& y, double factor, const Vector& x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

double max_norm(const Vector& x) {
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::fabs(value));
  return largest;
}

// A x in FP64.
Vector product_of(const Matrix& a, const Vector& x) {
  Vector y(x.size());
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j)
      y[static_cast<std::size_t>(i)] += a(i, j) * x[static_cast<std::size_t>(j)];
  return y;
}

// A = L U in place without pivots, FP32: columns of a block by Gaussian elimination, the rest by one product.
void factorize(Matrix& a, Products& products) {
  for (std::int64_t first = 0; first < a.rows; first += block) {
    const std::int64_t next = std::min(first + block, a.rows);
    for (std::int64_t k = first; k < next; ++k) {
      for (std::int64_t i = k + 1; i < a.rows; ++i) {
        a(i, k) /= a(k, k);
        for (std::int64_t j = k + 1; j < next; ++j) a(i, j) -= a(i, k) * a(k, j);
      }
      for (std::int64_t i = k + 1; i < next; ++i)
        for (std::int64_t j = next; j < a.rows; ++j) a(i, j) -= a(i, k) * a(k, j);
    }
    const std::int64_t rest = a.rows - next;
    if (rest == 0) return;
    const Matrix update = products.multiply("update_trailing", block_of(a, next, first, rest, next - first),
                                            block_of(a, first, next, next - first, rest));
    for (std::int64_t i = 0; i < rest; ++i)
      for (std::int64_t j = 0; j < rest; ++j) a(next + i, next + j) -= update(i, j);
  }
}

// U^-1 L^-1 x in FP64 of factors in FP32.
Vector precondition(const Matrix& factors, Vector x) {
  const std::int64_t n = factors.rows;
  const auto at = [&x](std::int64_t i) -> double& { return x[static_cast<std::size_t>(i)]; };
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < i; ++j) at(i) -= factors(i, j) * at(j);
  for (std::int64_t i = n; i-- > 0;) {
    for (std::int64_t j = i + 1; j < n; ++j) at(i) -= factors(i, j) * at(j);
    at(i) /= factors(i, i);
  }
  return x;
}

// The least squares problem of GMRES, min |norm e1 - H y|, by Givens rotations as columns of H arrive.
class Hessenberg {
 public:
  explicit Hessenberg(double norm) : right_{norm} {}

  void add_column(Vector column) {
    for (std::size_t i = 0; i < cosines_.size(); ++i) rotate(column[i], column[i + 1], i);
    const std::size_t last = cosines_.size();
    const double length = std::hypot(column[last], column[last + 1]);
    cosines_.push_back(column[last] / length);
    sines_.push_back(column[last + 1] / length);
    rotate(column[last], column[last + 1], last);
    right_.push_back(0);
    rotate(right_[last], right_[last + 1], last);
    columns_.push_back(std::move(column));
  }

  Vector solution() const {
    Vector y(columns_.size());
    for (std::size_t i = y.size(); i-- > 0;) {
      y[i] = right_[i];
      for (std::size_t j = i + 1; j < y.size(); ++j) y[i] -= columns_[j][i] * y[j];
      y[i] /= columns_[i][i];
    }
    return y;
  }

 private:
  void rotate(double& upper, double& lower, std::size_t i) const {
    const double rotated = cosines_[i] * upper + sines_[i] * lower;
    lower = cosines_[i] * lower - sines_[i] * upper;
    upper = rotated;
  }

  Vector right_, cosines_, sines_;
  std::vector<Vector> columns_;
};

// Returns the correction that one cycle of GMRES, preconditioned from the left, finds for a residual.
Vector gmres_cycle(const Matrix& a, const Matrix& factors, const Vector& residual) {
  constexpr int steps = 5;
  constexpr double converged = 1e-14;  // a new vector's norm beside the first one's
  Vector first = precondition(factors, residual);
  const double norm = std::sqrt(dot(first, first));
  Vector correction(residual.size());
  if (!(norm > 0)) return correction;
  Hessenberg hessenberg(norm);
  std::vector<Vector> basis;
  double length = norm;
  for (Vector next = std::move(first); basis.size() < steps && length > converged * norm;) {
    basis.emplace_back(next.size());
    add_multiple(basis.back(), 1 / length, next);
    next = precondition(factors, product_of(a, basis.back()));
    Vector column;
    for (const Vector& vector : basis) {
      column.push_back(dot(vector, next));
      add_multiple(next, -column.back(), vector);
    }
    length = std::sqrt(dot(next, next));
    column.push_back(length);
    hessenberg.add_column(std::move(column));
  }
  const Vector weights = hessenberg.solution();
  for (std::size_t i = 0; i < weights.size(); ++i) add_multiple(correction, weights[i], basis[i]);
  return correction;
}

// Returns the sum of the magnitudes of each row.
Vector row_sums(const Matrix& a) {
  Vector sums(static_cast<std::size_t>(a.rows));
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.columns; ++j) sums[static_cast<std::size_t>(i)] += std::fabs(a(i, j));
  return sums;
}

}  // namespace

double hpl_ai_residual(std::int64_t n, const std::string& distribution, Products& products) {
  constexpr int most_cycles = 10;
  constexpr double eps = 0x1p-53;
  Matrix a = random_matrix(n, n, distribution, 1);
  const Vector diagonal = row_sums(a);
  for (std::int64_t i = 0; i < n; ++i) a(i, i) = static_cast<float>(diagonal[static_cast<std::size_t>(i)]);
  const Matrix right = random_matrix(n, 1, distribution, 2);
  const Vector b(right.values.begin(), right.values.end());
  Matrix factors = a;
  factorize(factors, products);
  Vector x(b.size());
  Vector residual = b;
  for (int cycle = 0; cycle < most_cycles; ++cycle) {
    Vector better = x;
    add_multiple(better, 1, gmres_cycle(a, factors, residual));
    Vector next = b;
    add_multiple(next, -1, product_of(a, better));
    if (!(max_norm(next) < max_norm(residual))) break;
    x = std::move(better);
    residual = std::move(next);
  }
  const double scale = max_norm(row_sums(a)) * max_norm(x) + max_norm(b);
  return max_norm(residual) / (eps * scale * static_cast<double>(n));
}

}  // namespace kintsugi::tools::programs
