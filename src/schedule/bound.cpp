#include "schedule/bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/view.hpp"

namespace kintsugi::core {

namespace {

// Returns, for each term, a bound of |product of its slices| / (|a||b|), with the weights that the ratios
// include.
std::vector<double> term_ratios(const Schedule& schedule, std::span<const double> ratios_a,
                                std::span<const double> ratios_b) {
  std::vector<double> ratios;
  for (const Term& term : schedule.terms) ratios.push_back(ratios_a[term.a] * ratios_b[term.b]);
  return ratios;
}

// Returns the number of fp32 additions outside the engine through which the sum of the first k-block passes:
// first in its segment, then of later segments. cuBLAS has no segments, and adds each term by itself.
std::int64_t outside_roundings(const Schedule& schedule, Accumulator accumulator, std::int64_t k) {
  const std::int64_t segment = accumulator == Accumulator::cublas ? k : schedule.segment_length(k);
  const std::int64_t blocks = divide_up(segment, schedule.block_length(k));
  const std::int64_t later_segments = divide_up(k, segment) - 1;
  std::array<std::int64_t, max_groups> terms{};
  for (const Term& term : schedule.terms) ++terms[schedule.joint ? 0 : term.group];
  const std::int64_t groups_per_sum = schedule.joint ? schedule.groups : 1;
  const std::int64_t additions_per_block =
      accumulator == Accumulator::cublas ? *std::max_element(terms.begin(), terms.end()) : groups_per_sum;
  return later_segments +
         (schedule.joint ? blocks * additions_per_block - 1 : (blocks - 1) * additions_per_block);
}

// Returns 0, since integer sums are exact; infinity if an accumulator can wrap within a block. An accumulator
// sums all terms of its group.
double integer_bound(const Schedule& schedule, Accumulator accumulator, std::int64_t block) {
  std::array<std::int64_t, max_groups> products{};
  for (const Term& term : schedule.terms) products[term.group] += block;
  const std::int64_t max_products = *std::max_element(products.begin(), products.end());
  return max_products <= safe_products(accumulator) ? 0 : std::numeric_limits<double>::infinity();
}

}  // namespace

double accumulation_bound(const Schedule& schedule, std::span<const double> ratios_a,
                          std::span<const double> ratios_b, Accumulator accumulator, const Format& format,
                          std::int64_t k) {
  const std::vector<double> ratios = term_ratios(schedule, ratios_a, ratios_b);
  if (k == 0) return 0;
  const std::int64_t block = schedule.block_length(k);
  if (!format.floating) return integer_bound(schedule, accumulator, block);
  const bool alternating = schedule.k_step != 0 && schedule.k_step < block;
  std::array<double, max_groups> held{};  // magnitude of each group's accumulator, relative to |a||b|
  if (alternating) {
    for (std::size_t t = 0; t < ratios.size(); ++t) held[schedule.terms[t].group] += ratios[t];
  }
  // With alternating terms a run consists of several steps, and each step may end with a partial instruction
  // block.
  const std::int64_t steps = alternating ? divide_up(block, schedule.k_step) : 1;
  const double run = static_cast<double>(steps) *
                     accumulation_error(accumulator, format.id, alternating ? schedule.k_step : block);
  double inside = 0;
  for (std::size_t t = 0; t < ratios.size(); ++t) {
    double& magnitude = held[schedule.terms[t].group];
    if (!alternating) magnitude += ratios[t];
    inside += run * magnitude;
  }
  const double all = std::accumulate(held.begin(), held.end(), 0.0);
  const auto roundings = static_cast<double>(outside_roundings(schedule, accumulator, k));
  const double outside = roundings * 0x1p-24 * all;
  const double first_order = inside + outside;
  return std::expm1(first_order);
}

}  // namespace kintsugi::core
