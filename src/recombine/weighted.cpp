#include "recombine/weighted.hpp"

#include "arith/epilogue.hpp"
#include "base/floating_environment.hpp"
#include "base/workers.hpp"

namespace kintsugi::core {

void recombine_weighted(const Accumulators& sums, std::span<const int> group_exponents,
                        std::span<const VectorRange> rows, std::span<const VectorRange> columns, float alpha,
                        float beta, const MatrixView<float>& c, int threads) {
#pragma omp parallel for num_threads(workers_for(c.columns, threads)) schedule(static)
  for (std::int64_t j = 0; j < c.columns; ++j) {
    const FloatingEnvironment environment;
    if (!columns[j].finite()) continue;
    for (std::int64_t i = 0; i < c.rows; ++i) {
      if (!rows[i].finite()) continue;
      double sum = 0;
      for (int g = 0; g < sums.groups; ++g) {
        const float part = sums.group<float>(g)[i + j * sums.rows];
        sum += power_of_two(group_exponents[g]) * static_cast<double>(part);
      }
      float& entry = c(i, j);
      entry = epilogue(sum, -(rows[i].scale + columns[j].scale), alpha, beta, beta == 0 ? nullptr : &entry);
    }
  }
}

}  // namespace kintsugi::core
