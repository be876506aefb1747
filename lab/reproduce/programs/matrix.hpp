// FP32 matrices of the papers' programs, and their products by a method for each call site.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/reproduce/evidence.hpp"
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

// Returns a matrix whose elements have the distribution of tools/measure/generators.
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

}  // namespace kintsugi::tools::programs
