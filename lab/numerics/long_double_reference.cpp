#include "lab/numerics/long_double_reference.hpp"

#include <cmath>
#include <cstdint>
#include <iterator>

namespace kintsugi::lab {
namespace {

// Returns the vectors of a matrix, rows of `vectors`, contiguous in memory.
template <class T>
std::vector<T> packed(core::MatrixView<const T> vectors) {
  std::vector<T> result(static_cast<std::size_t>(vectors.rows * vectors.columns));
#pragma omp parallel for schedule(static)
  for (std::int64_t v = 0; v < vectors.rows; ++v) {
    for (std::int64_t l = 0; l < vectors.columns; ++l) result[v * vectors.columns + l] = vectors(v, l);
  }
  return result;
}

template <class T>
long double dot(const T* row, const T* column, std::int64_t count) {
  long double sum = 0;
  for (std::int64_t l = 0; l < count; ++l)
    sum += static_cast<long double>(row[l]) * static_cast<long double>(column[l]);
  return sum;
}

}  // namespace

template <class T>
std::vector<long double> long_double_sums(core::MatrixView<const T> a, core::MatrixView<const T> b,
                                          const std::vector<measure::ElementError>& elements) {
  const std::int64_t k = a.columns;
  const std::vector<T> rows = packed(a);
  const std::vector<T> columns = packed(b.transposed());
  std::vector<long double> sums(elements.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t e = 0; e < std::ssize(elements); ++e)
    sums[e] = dot(rows.data() + elements[e].i * k, columns.data() + elements[e].j * k, k);
  return sums;
}

double mean_relative_error(const std::vector<measure::ElementError>& elements,
                           const std::vector<long double>& sums) {
  long double total = 0;
  std::int64_t count = 0;
  for (std::size_t e = 0; e < elements.size(); ++e) {
    if (sums[e] == 0 || !std::isfinite(sums[e])) continue;
    total += std::fabs(static_cast<long double>(elements[e].computed) - sums[e]) / std::fabs(sums[e]);
    ++count;
  }
  return count == 0 ? 0 : static_cast<double>(total / static_cast<long double>(count));
}

template std::vector<long double> long_double_sums(core::MatrixView<const float>,
                                                   core::MatrixView<const float>,
                                                   const std::vector<measure::ElementError>&);
template std::vector<long double> long_double_sums(core::MatrixView<const double>,
                                                   core::MatrixView<const double>,
                                                   const std::vector<measure::ElementError>&);

}  // namespace kintsugi::lab
