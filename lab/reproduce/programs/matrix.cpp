#include "lab/reproduce/programs/matrix.hpp"

#include <cmath>

#include "tools/measure/generators/generators.hpp"

namespace kintsugi::tools::programs {

Matrix random_matrix(std::int64_t rows, std::int64_t columns, const std::string& distribution,
                     std::uint64_t seed) {
  Matrix matrix(rows, columns);
  measure::fill(measure::parse_distribution(distribution), measure::Side::a, seed,
                core::MatrixView<float>{matrix.values.data(), rows, columns, columns, 1});
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

Matrix Products::multiply(const std::string& site, const Matrix& a, const Matrix& b) {
  const auto found = methods_.find(site);
  const SchemeOnEngine& method = found == methods_.end() ? default_ : found->second;
  Matrix c(a.rows, b.columns);
  const Plan plan = make_plan(handle_.get(), {a.rows, b.columns, a.columns},
                              {Type::float32, method.scheme, method.engine, method.accumulator});
  require(method.scheme,
          execute_product(handle_.get(), plan, a.values.data(), b.values.data(), c.values.data()));
  return c;
}

}  // namespace kintsugi::tools::programs
