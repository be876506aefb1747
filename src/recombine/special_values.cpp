#include "recombine/special_values.hpp"

#include "base/floating_environment.hpp"
#include "base/workers.hpp"

namespace kintsugi::core {

namespace {

bool finite(float x) { return x - x == 0.0F; }

float special_sum(const MatrixView<const float>& a, const MatrixView<const float>& b, std::int64_t i,
                  std::int64_t j) {
  float sum = 0;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const float x = a(i, p);
    const float y = b(j, p);
    if (!finite(x) || !finite(y)) sum += x * y;
  }
  return sum;
}

}  // namespace

void put_special_values(const MatrixView<const float>& a, const MatrixView<const float>& b,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, float alpha,
                        float beta, const MatrixView<float>& c, int threads) {
#pragma omp parallel for num_threads(workers_for(c.columns, threads)) schedule(dynamic)
  for (std::int64_t j = 0; j < c.columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      if (rows[i].finite() && columns[j].finite()) continue;
      const float product = alpha * special_sum(a, b, i, j);
      c(i, j) = beta == 0 ? product : product + beta * c(i, j);
    }
  }
}

}  // namespace kintsugi::core
