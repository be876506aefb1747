#include "recombine/check/proofs.hpp"

#include "base/floating_environment.hpp"
#include "base/threads.hpp"

namespace kintsugi::core {

void prove_elements(const Accumulators& sums, int parts, const ElementCheck& check, double unit,
                    std::uint8_t* states, int threads) {
  const std::int64_t columns = sums.columns / parts;
  const auto is_proved = [&](std::int64_t i, std::int64_t v) {
    const double deviation =
        largest_deviation(check.rows[i], check.columns[v], check.largest_a, check.largest_b);
    const double magnitudes = static_cast<double>(sums.group<std::int64_t>(0)[i + v * sums.rows]);
    return keeps(check.demand, magnitudes * unit, deviation);
  };
#pragma omp parallel for num_threads(workers_for(columns, threads)) schedule(static)
  for (std::int64_t j = 0; j < columns; ++j) {
    const FloatingEnvironment environment;
    for (std::int64_t i = 0; i < sums.rows; ++i) {
      bool proved = true;
      for (int part = 0; part < parts; ++part) proved = proved && is_proved(i, parts * j + part);
      if (proved) states[i + j * sums.rows] = ElementCheck::proved;
    }
  }
}

}  // namespace kintsugi::core
