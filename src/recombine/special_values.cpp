#include "recombine/special_values.hpp"

#include "base/floating_environment.hpp"
#include "base/threads.hpp"
#include "recombine/pair_element.hpp"
#include "recombine/special_element.hpp"

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

template void write_special_values(const MatrixView<const float>&, const MatrixView<const float>&,
                                   std::span<const VectorRange>, std::span<const VectorRange>, float, float,
                                   const MatrixView<float>&, int);
template void write_special_values(const MatrixView<const double>&, const MatrixView<const double>&,
                                   std::span<const VectorRange>, std::span<const VectorRange>, double, double,
                                   const MatrixView<double>&, int);
template void write_special_values(const MatrixView<const DoubleDouble>&,
                                   const MatrixView<const DoubleDouble>&, std::span<const VectorRange>,
                                   std::span<const VectorRange>, DoubleDouble, DoubleDouble,
                                   const MatrixView<DoubleDouble>&, int);
template void write_special_values(const EmbeddedView<float>&, const EmbeddedView<float>&,
                                   std::span<const VectorRange>, std::span<const VectorRange>,
                                   std::complex<float>, std::complex<float>,
                                   const MatrixView<std::complex<float>>&, int);
template void write_special_values(const EmbeddedView<double>&, const EmbeddedView<double>&,
                                   std::span<const VectorRange>, std::span<const VectorRange>,
                                   std::complex<double>, std::complex<double>,
                                   const MatrixView<std::complex<double>>&, int);

}  // namespace kintsugi::core
