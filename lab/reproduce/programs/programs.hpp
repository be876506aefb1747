// Programs on which MixPert (LCTES 2024) was judged, at sizes that a CPU can run, with FP32 matrices and
// products by a method for each call site.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/reproduce/claims.hpp"
#include "tools/plan.hpp"

namespace kintsugi::tools::programs {

struct Matrix {  // row-major
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<float> values;

  Matrix(std::int64_t row_count, std::int64_t column_count)
      : rows(row_count), columns(column_count), values(static_cast<std::size_t>(row_count * column_count)) {}

  float& operator()(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
  float operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

// Returns a matrix whose elements have the distribution.
Matrix random_matrix(std::int64_t rows, std::int64_t columns, const std::string& distribution,
                     std::uint64_t seed);
// Returns a copy of the block that begins at (row, column).
Matrix block_of(const Matrix& matrix, std::int64_t row, std::int64_t column, std::int64_t rows,
                std::int64_t columns);
Matrix transposed(const Matrix& matrix);

// Returns |result - reference| / |reference| in the Frobenius norm (MixPert's Eq. 10), summed in FP64.
double frobenius_error(const Matrix& result, const Matrix& reference);

inline const SchemeOnEngine native{"native", "reference", ""};  // FP32 sums, one after the other

// Computes the products of a program: each call site has a method, native unless it is set.
class Products {
 public:
  Products() = default;
  explicit Products(SchemeOnEngine method) : default_(std::move(method)) {}

  void set(const std::string& site, const SchemeOnEngine& method) { methods_[site] = method; }

  // Returns A B by the site's method.
  Matrix multiply(const std::string& site, const Matrix& a, const Matrix& b);

 private:
  SchemeOnEngine default_ = native;
  std::map<std::string, SchemeOnEngine> methods_;
  Handle handle_ = make_handle();
};

struct Site {
  std::string name;
  std::vector<std::size_t> predecessors;  // sites whose results this site reads
};

// Y = tanh(tanh(X W1) W2) W3 with n x n matrices; X has `samples` rows. X and the weights have the
// distribution. The weights are scaled so that layers neither grow nor shrink symmetric data.
class Perceptron {
 public:
  static const std::vector<Site>& sites();
  Perceptron(std::int64_t n, const std::string& distribution) : Perceptron(n, n, distribution) {}
  Perceptron(std::int64_t samples, std::int64_t n, const std::string& distribution);
  Matrix run(Products& products) const;
  // Returns the multiplications of each site.
  std::vector<double> multiplications() const;

 private:
  std::int64_t samples_, n_;
  std::vector<Matrix> factors_;  // X, W1, W2, W3
};

// Factorizes A = L L^T, right-looking by block columns of n / 8 and at most 512, with look-ahead of one block
// column. The sites are those of lab/apps/mixpert and lab/apps/blocked_cholesky.cpp.
class Cholesky {
 public:
  static const std::vector<Site>& sites();
  // A = M M^T / n + I, where M has the distribution.
  Cholesky(std::int64_t n, const std::string& distribution);
  // A's lower half alone is read.
  explicit Cholesky(Matrix a) : n_(a.rows), a_(std::move(a)) {}
  Matrix run(Products& products) const;
  std::vector<double> multiplications() const;

 private:
  std::int64_t n_;
  Matrix a_;
};

// Solves A x = b with a diagonally dominant A: by block LU in FP32, then GMRES in FP64 until the residual no
// longer decreases. The trailing update of LU is the only call site. Returns HPL-AI's scaled residual |A x -
// b| / (eps (|A| |x| + |b|) n) in the maximum norm. A result below 16 is valid.
double hpl_ai_residual(std::int64_t n, const std::string& distribution, Products& products);

}  // namespace kintsugi::tools::programs
