#include "recombine/special_values.hpp"

#include "arith/complex.hpp"
#include "base/floating_environment.hpp"
#include "base/workers.hpp"

namespace kintsugi::core {

namespace {

template <class T>
bool finite(T x) {
  return x - x == T(0);
}

template <class T, class View>
T special_sum(const View& a, const View& b, std::int64_t i, std::int64_t v) {
  T sum = 0;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const T x = a(i, p);
    const T y = b(v, p);
    if (!finite(x) || !finite(y)) sum += x * y;
  }
  return sum;
}

template <class T>
T special_entry(const OperandView<T>& a, const OperandView<T>& b, std::int64_t i, std::int64_t j) {
  if constexpr (is_complex<T>) {
    return {special_sum<RealOf<T>>(a, b, i, 2 * j), special_sum<RealOf<T>>(a, b, i, 2 * j + 1)};
  } else {
    return special_sum<T>(a, b, i, j);
  }
}

}  // namespace

template <class T>
void put_special_values(const OperandView<T>& a, const OperandView<T>& b, std::span<const VectorRange> rows,
                        std::span<const VectorRange> columns, T alpha, T beta, const MatrixView<T>& c,
                        int threads) {
#pragma omp parallel for num_threads(workers_for(c.columns, threads)) schedule(dynamic)
  for (std::int64_t j = 0; j < c.columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      if (rows[i].finite() && columns[parts_of<T> * j].finite()) continue;
      const T product = times(alpha, special_entry<T>(a, b, i, j));
      c(i, j) = beta == T(0) ? product : product + times(beta, c(i, j));
    }
  }
}

template void put_special_values(const MatrixView<const float>&, const MatrixView<const float>&,
                                 std::span<const VectorRange>, std::span<const VectorRange>, float, float,
                                 const MatrixView<float>&, int);
template void put_special_values(const MatrixView<const double>&, const MatrixView<const double>&,
                                 std::span<const VectorRange>, std::span<const VectorRange>, double, double,
                                 const MatrixView<double>&, int);
template void put_special_values(const EmbeddedView<float>&, const EmbeddedView<float>&,
                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                 std::complex<float>, std::complex<float>,
                                 const MatrixView<std::complex<float>>&, int);
template void put_special_values(const EmbeddedView<double>&, const EmbeddedView<double>&,
                                 std::span<const VectorRange>, std::span<const VectorRange>,
                                 std::complex<double>, std::complex<double>,
                                 const MatrixView<std::complex<double>>&, int);

}  // namespace kintsugi::core
