#include "schemes/tile_bound.hpp"

#include <algorithm>

#include "arith/tile_arithmetic.hpp"
#include "base/view.hpp"

namespace kintsugi::core {

namespace {

// Returns the largest magnitude of a product of segments, relative to the leading powers of two of both
// tiles.
double segment_product(int i, int j) { return 127.0 * 127.0 * power_of_two(-12 - segment_bits * (i + j)); }

bool has_product(const Schedule& schedule, int i, int j) {
  return std::any_of(schedule.terms.begin(), schedule.terms.end(),
                     [&](const Term& term) { return term.a == i && term.b == j; });
}

// Returns the sum of the left-out products of segments of two elements. (The half-precision program leaves
// out less: 5 * 2^-46 and smaller products, in total below 2^-43.)
double left_out(const Program& program) {
  double sum = 0;
  for (int i = 0; i < program.split_a.slices; ++i) {
    for (int j = 0; j < program.split_b.slices; ++j) {
      if (!has_product(program.schedule, i, j)) sum += segment_product(i, j);
    }
  }
  constexpr double half_precision = 0x1p-43;
  return std::max(sum, half_precision);
}

}  // namespace

double tile_rounding(const SplitRule& rule) { return power_of_two(-segment_bits * rule.slices); }

ErrorBound tile_split_bound(const Program& program, std::int64_t k) {
  // If both tiles of a product share one exponent, the elements of one tile are shifted by the difference of
  // the exponents. Exponents of FP32 numbers are between -149 and 128 after rounding.
  const double shifted = program.schedule.tiles.pair_exponent ? power_of_two(278) : 1;
  const double a = shifted * tile_rounding(program.split_a);
  const double b = shifted * tile_rounding(program.split_b);
  return {.floor_a = a, .floor_b = b, .floor_both = static_cast<double>(k) * (a * b + left_out(program))};
}

// Each operation in FP32 loses at most u of its result. A product of elements passes through these
// operations:
// - one addition for each later tile or piece. Tiles and pieces have at least 32 inner indices.
// - the fma of tile_value().
// - the conversions of two integers to FP32. Together the conversions lose u, and nothing for k <= 2.
// The fma instructions of the half-precision program lose u, 2^-8 u, 2^-16 u and so on.
ErrorBound tile_bound(const Program& program, std::int64_t k) {
  const ErrorBound split = tile_split_bound(program, k);
  const double additions = static_cast<double>(divide_up(k, half_piece)) + (k > 2 ? 1 : 0) + 0x1p-6;
  const double loss = additions * 0x1p-24 / (1 - additions * 0x1p-24);
  // Weights below 2^-126 are zero, and subnormal fp32 sums lose bits.
  const double underflow = static_cast<double>(k) * 0x1p-100;
  return {.relative = loss,
          .floor_a = split.floor_a * (1 + loss),
          .floor_b = split.floor_b * (1 + loss),
          .floor_both = split.floor_both * (1 + loss) + underflow};
}

}  // namespace kintsugi::core
