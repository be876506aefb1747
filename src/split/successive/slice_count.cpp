#include "split/successive/slice_count.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/floating_environment.hpp"
#include "base/threads.hpp"

namespace kintsugi::core {

template <class View>
void sum_vectors(const View& b, std::span<const VectorRange> ranges, double* weights, int threads) {
#pragma omp parallel for num_threads(workers_for(b.columns, threads)) schedule(static)
  for (std::int64_t p = 0; p < b.columns; ++p) {
    const FloatingEnvironment environment;
    ExactSum sum;
    for (std::int64_t v = 0; v < b.rows; ++v) {
      if (ranges[v].finite()) sum.add(std::fabs(static_cast<double>(b(v, p))));
    }
    // Weights are limited to finite numbers. Otherwise the sums of multiply_magnitudes() would be infinite or
    // NaN.
    weights[p] = std::min(sum.to_double(), std::numeric_limits<double>::max());
  }
}

template <class View>
void multiply_magnitudes(const View& a, std::span<const VectorRange> ranges, const double* weights,
                         Scaled* weighted, int threads) {
#pragma omp parallel for num_threads(workers_for(a.rows, threads)) schedule(static)
  for (std::int64_t v = 0; v < a.rows; ++v) {
    const FloatingEnvironment environment;
    ExactSum sum;
    if (ranges[v].finite()) {
      for (std::int64_t p = 0; p < a.columns; ++p)
        sum.add_product(std::fabs(static_cast<double>(a(v, p))), weights[p]);
    }
    weighted[v] = sum.to_scaled();
  }
}

template void sum_vectors(const MatrixView<const float>&, std::span<const VectorRange>, double*, int);
template void multiply_magnitudes(const MatrixView<const float>&, std::span<const VectorRange>, const double*,
                                  Scaled*, int);
template void sum_vectors(const MatrixView<const double>&, std::span<const VectorRange>, double*, int);
template void multiply_magnitudes(const MatrixView<const double>&, std::span<const VectorRange>,
                                  const double*, Scaled*, int);
template void sum_vectors(const EmbeddedView<float>&, std::span<const VectorRange>, double*, int);
template void multiply_magnitudes(const EmbeddedView<float>&, std::span<const VectorRange>, const double*,
                                  Scaled*, int);
template void sum_vectors(const EmbeddedView<double>&, std::span<const VectorRange>, double*, int);
template void multiply_magnitudes(const EmbeddedView<double>&, std::span<const VectorRange>, const double*,
                                  Scaled*, int);

}  // namespace kintsugi::core
