#include "lab/reproduce/programs/programs.hpp"

#include <algorithm>
#include <cmath>

#include "lab/accuracy/case.hpp"
#include "lab/numerics/segment_products.hpp"

namespace kintsugi::tools::programs {

// --------------------------------------------------------------- matrices

Matrix random_matrix(std::int64_t rows, std::int64_t columns, const std::string& distribution,
                     std::uint64_t seed) {
  Matrix matrix(rows, columns);
  matrix.values = random_elements<float>(distribution, measure::Side::a, seed, rows, columns);
  return matrix;
}

Matrix block_of(const Matrix& matrix, std::int64_t row, std::int64_t column, std::int64_t rows,
                std::int64_t columns) {
  Matrix block(rows, columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) block(i, j) = matrix(row + i, column + j);
  return block;
}

Matrix transposed(const Matrix& matrix) {
  Matrix result(matrix.columns, matrix.rows);
  for (std::int64_t i = 0; i < matrix.rows; ++i)
    for (std::int64_t j = 0; j < matrix.columns; ++j) result(j, i) = matrix(i, j);
  return result;
}

double frobenius_error(const Matrix& result, const Matrix& reference) {
  double difference = 0;
  double total = 0;
  for (std::size_t i = 0; i < reference.values.size(); ++i) {
    const double exact = reference.values[i];
    const double error = result.values[i] - exact;
    difference += error * error;
    total += exact * exact;
  }
  return std::sqrt(difference / total);
}

namespace {

// Computes C = A B if the method is one of MixPert's levels on the CPU and the operands let it; else returns
// false.
bool multiply_by_level(const SchemeOnEngine& method, const Matrix& a, const Matrix& b, Matrix& c) {
  static const std::map<std::string, std::pair<int, int>> segments{
      {"mixpert-1", {2, 2}}, {"mixpert-2", {2, 3}}, {"mixpert-3", {3, 2}}, {"mixpert-4", {3, 3}}};
  const auto level = segments.find(method.scheme);
  if (method.engine != "cpu" || level == segments.end()) return false;
  return lab::multiply_segments(level->second.first, level->second.second, a.rows, b.columns, a.columns,
                                a.values.data(), b.values.data(), c.values.data());
}

}  // namespace

Matrix Products::multiply(const std::string& site, const Matrix& a, const Matrix& b) {
  const auto found = methods_.find(site);
  const SchemeOnEngine& method = found == methods_.end() ? default_ : found->second;
  Matrix c(a.rows, b.columns);
  if (multiply_by_level(method, a, b, c)) return c;
  const Plan plan = make_plan(handle_.get(), {a.rows, b.columns, a.columns},
                              {Type::float32, method.scheme, method.engine, method.accumulator});
  require(method.scheme,
          execute_product(handle_.get(), plan, a.values.data(), b.values.data(), c.values.data()));
  return c;
}

// ------------------------------------------------------------- perceptron

const std::vector<Site>& Perceptron::sites() {
  static const std::vector<Site> all{{"first_layer", {}}, {"second_layer", {0}}, {"last_layer", {1}}};
  return all;
}

Perceptron::Perceptron(std::int64_t samples, std::int64_t n, const std::string& distribution)
    : samples_(samples), n_(n) {
  for (std::size_t i = 0; i <= sites().size(); ++i) {
    factors_.push_back(random_matrix(i == 0 ? samples : n, n, distribution, i + 1));
    if (i == 0) continue;
    const auto gain = static_cast<float>(std::sqrt(3.0 / static_cast<double>(n)));
    for (float& weight : factors_.back().values) weight *= gain;
  }
}

Matrix Perceptron::run(Products& products) const {
  Matrix hidden = factors_.front();
  for (std::size_t layer = 0; layer < sites().size(); ++layer) {
    hidden = products.multiply(sites()[layer].name, hidden, factors_[layer + 1]);
    if (layer + 1 == sites().size()) break;
    for (float& value : hidden.values) value = std::tanh(value);
  }
  return hidden;
}

std::vector<double> Perceptron::multiplications() const {
  return std::vector<double>(sites().size(),
                             static_cast<double>(samples_) * std::pow(static_cast<double>(n_), 2));
}

// --------------------------------------------------------------- Cholesky

namespace {

enum SiteNumber : std::size_t { solve_panel, update_diagonal, update_panel, update_trailing };

std::int64_t block_size(std::int64_t n) { return std::clamp<std::int64_t>(n / 8, 16, 512); }

// Returns the lower factor of a symmetric matrix, of which the lower half is read, unblocked.
Matrix factor_of(const Matrix& a) {
  Matrix lower(a.rows, a.rows);
  for (std::int64_t j = 0; j < a.rows; ++j) {
    for (std::int64_t i = j; i < a.rows; ++i) {
      float sum = a(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= lower(i, k) * lower(j, k);
      lower(i, j) = i == j ? std::sqrt(sum) : sum / lower(j, j);
    }
  }
  return lower;
}

Matrix inverse_of_lower(const Matrix& lower) {
  Matrix inverse(lower.rows, lower.rows);
  for (std::int64_t j = 0; j < lower.rows; ++j) {
    for (std::int64_t i = j; i < lower.rows; ++i) {
      float sum = i == j ? 1.0F : 0.0F;
      for (std::int64_t k = j; k < i; ++k) sum -= lower(i, k) * inverse(k, j);
      inverse(i, j) = sum / lower(i, i);
    }
  }
  return inverse;
}

void put(Matrix& target, std::int64_t row, std::int64_t column, const Matrix& block) {
  for (std::int64_t i = 0; i < block.rows; ++i)
    for (std::int64_t j = 0; j < block.columns; ++j) target(row + i, column + j) = block(i, j);
}

// The factorization in place of one matrix, one block column after the other.
class Factorization {
 public:
  Factorization(Matrix a, Products& products)
      : a_(std::move(a)), n_(a_.rows), block_(block_size(n_)), products_(products) {}

  Matrix run() {
    for (std::int64_t first = 0; first < n_; first += block_) factor_column(first);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = i + 1; j < n_; ++j) a_(i, j) = 0;
    return std::move(a_);
  }

 private:
  void factor_column(std::int64_t first) {
    const std::int64_t next = std::min(first + block_, n_);
    const Matrix diagonal = factor_of(block_of(a_, first, first, next - first, next - first));
    put(a_, first, first, diagonal);
    if (next == n_) return;
    const Matrix panel = products_.multiply(Cholesky::sites()[solve_panel].name,
                                            block_of(a_, next, first, n_ - next, next - first),
                                            transposed(inverse_of_lower(diagonal)));
    put(a_, next, first, panel);
    const std::int64_t below = std::min(next + block_, n_);
    subtract_product(update_diagonal, panel, next, below, next, below);
    if (below == n_) return;
    subtract_product(update_panel, panel, below, n_, next, below);
    // The lower half, by columns.
    const std::int64_t width = 2 * block_;
    for (std::int64_t left = below; left < n_; left += width)
      subtract_product(update_trailing, panel, left, n_, left, std::min(left + width, n_));
  }

  // A(top:bottom, left:right) -= P(top:bottom) P(left:right)^T, where rows of the panel P are those of A.
  void subtract_product(SiteNumber site, const Matrix& panel, std::int64_t top, std::int64_t bottom,
                        std::int64_t left, std::int64_t right) {
    const std::int64_t start = n_ - panel.rows;
    const Matrix product = products_.multiply(
        Cholesky::sites()[site].name, block_of(panel, top - start, 0, bottom - top, panel.columns),
        transposed(block_of(panel, left - start, 0, right - left, panel.columns)));
    for (std::int64_t i = top; i < bottom; ++i)
      for (std::int64_t j = left; j < right; ++j) a_(i, j) -= product(i - top, j - left);
  }

  Matrix a_;
  std::int64_t n_, block_;
  Products& products_;
};

}  // namespace

const std::vector<Site>& Cholesky::sites() {
  static const std::vector<Site> all{{"solve_panel", {update_panel, update_trailing}},
                                     {"update_diagonal", {solve_panel, update_trailing}},
                                     {"update_panel", {solve_panel, update_trailing}},
                                     {"update_trailing", {solve_panel, update_trailing}}};
  return all;
}

Cholesky::Cholesky(std::int64_t n, const std::string& distribution) : n_(n), a_(n, n) {
  const Matrix m = random_matrix(n, n, distribution, 1);
  a_ = Products().multiply("", m, transposed(m));
  for (float& value : a_.values) value /= static_cast<float>(n);
  for (std::int64_t i = 0; i < n; ++i) a_(i, i) += 1;
}

Matrix Cholesky::run(Products& products) const { return Factorization(a_, products).run(); }

std::vector<double> Cholesky::multiplications() const {
  std::vector<double> count(sites().size());
  const std::int64_t block = block_size(n_);
  for (std::int64_t next = block; next < n_; next += block) {
    const auto width = static_cast<double>(block);
    const auto rows = static_cast<double>(n_ - next);
    const double below = std::max(rows - width, 0.0);
    count[solve_panel] += rows * width * width;
    count[update_diagonal] += std::min(rows, width) * std::min(rows, width) * width;
    count[update_panel] += below * width * width;
    count[update_trailing] += below * below * width;
  }
  return count;
}

}  // namespace kintsugi::tools::programs
