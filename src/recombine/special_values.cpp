#include "recombine/special_values.hpp"

#include "base/floating_environment.hpp"
#include "base/workers.hpp"

namespace kintsugi::core {

namespace {

template <class T>
bool finite(T x) {
  return x - x == T(0);
}

template <class T>
T special_sum(const MatrixView<const T>& a, const MatrixView<const T>& b, std::int64_t i, std::int64_t j) {
  T sum = 0;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const T x = a(i, p);
    const T y = b(j, p);
    if (!finite(x) || !finite(y)) sum += x * y;
  }
  return sum;
}

}  // namespace

template <class T>
void put_special_values(const MatrixView<const T>& a, const MatrixView<const T>& b,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, T alpha,
                        T beta, const MatrixView<T>& c, int threads) {
#pragma omp parallel for num_threads(workers_for(c.columns, threads)) schedule(dynamic)
  for (std::int64_t j = 0; j < c.columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      if (rows[i].finite() && columns[j].finite()) continue;
      const T product = alpha * special_sum(a, b, i, j);
      c(i, j) = beta == 0 ? product : product + beta * c(i, j);
    }
  }
}

template void put_special_values(const MatrixView<const float>&, const MatrixView<const float>&,
                                 std::span<const VectorRange>, std::span<const VectorRange>, float, float,
                                 const MatrixView<float>&, int);
template void put_special_values(const MatrixView<const double>&, const MatrixView<const double>&,
                                 std::span<const VectorRange>, std::span<const VectorRange>, double, double,
                                 const MatrixView<double>&, int);

}  // namespace kintsugi::core
