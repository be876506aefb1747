#include "recombine/special_values.hpp"

#include <cmath>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "recombine/pair_element.hpp"

namespace kintsugi::core {

template <class T>
void write_special_values(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                          std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                          int threads) {
#pragma omp parallel for num_threads(workers_for(c.columns, threads)) schedule(dynamic)
  for (std::int64_t j = 0; j < c.columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      if (rows[i].finite() && columns[parts_of<T> * j].finite()) continue;
      T& element = c(i, j);
      const T* old = beta == T(0) ? nullptr : &element;
      if constexpr (is_double_double<T>) {
        element = special_pair_element(a, b, i, j, alpha, beta, old);
      } else {
        element = special_element<T>(a, b, i, j, alpha, beta, old);
      }
    }
  }
}

template <class T>
SpecialResults count_special_results(const MatrixView<T>& c, std::span<const VectorRange> rows,
                                     std::span<const VectorRange> columns, int threads) {
  const auto has_nan = [](const VectorRange& range) { return (range.flags & VectorRange::has_nan) != 0; };
  std::int64_t infinities = 0;
  std::int64_t nans = 0;
#pragma omp parallel for num_threads(workers_for(c.columns, threads)) reduction(+ : infinities, nans)
  for (std::int64_t j = 0; j < c.columns; ++j) {
    const VectorRange& column = columns[parts_of<T> * j];
    for (std::int64_t i = 0; i < c.rows; ++i) {
      const auto count = [&](auto part) {
        if (std::isinf(part) && rows[i].finite() && column.finite()) ++infinities;
        if (std::isnan(part) && !has_nan(rows[i]) && !has_nan(column)) ++nans;
      };
      if constexpr (is_complex<T>) {
        count(c(i, j).real());
        count(c(i, j).imag());
      } else if constexpr (is_double_double<T>) {
        count(c(i, j).hi);
      } else {
        count(c(i, j));
      }
    }
  }
  return {infinities, nans};
}

#define INSTANTIATE(T)                                                                                    \
  template SpecialResults count_special_results<T>(const MatrixView<T>&, std::span<const VectorRange>,    \
                                                   std::span<const VectorRange>, int);                    \
  template void write_special_values<T>(const OperandView<T>&, const OperandView<T>&,                     \
                                        std::span<const VectorRange>, std::span<const VectorRange>, T, T, \
                                        const MatrixView<T>&, int);
KINTSUGI_FOR_ALL_TYPES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace kintsugi::core
