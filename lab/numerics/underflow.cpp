#include "lab/numerics/underflow.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/status.hpp"
#include "formats/formats.hpp"

namespace kintsugi::lab {
namespace {

constexpr int significand_bits = 23;                                    // l_M
constexpr int high_bits = 10;                                           // l_M_high
constexpr int residual_bits = significand_bits - high_bits;             // 13, including the rounding bit
constexpr int max_zeros = residual_bits - 1;                            // N at r = 0
constexpr int smallest_normal = core::fp16.min_exponent;                // -14
constexpr int smallest_subnormal = smallest_normal - high_bits;         // -24
constexpr int leading_exponent(int exponent) { return exponent - 12; }  // exponent of |r| at N = 0

double power_of_half(int n) { return std::ldexp(1.0, -n); }

// Returns P(|r| 2^residual_exponent < 2^limit), by the smallest N that satisfies Eq. 4.
double probability_below(int limit, int exponent, int residual_exponent) {
  double sum = 0;
  for (int n = std::max(-1, leading_exponent(exponent) + residual_exponent - limit + 1); n <= max_zeros; ++n)
    sum += leading_zeros_probability(n, HighPart::truncated) +
           leading_zeros_probability(n, HighPart::rounded_up);
  return sum;
}

}  // namespace

float random_of_exponent(measure::Random& random, int exponent) {
  const std::uint64_t bits = random.bits();
  const auto fraction = static_cast<std::uint32_t>(bits >> 41);
  const auto sign = static_cast<std::uint32_t>(bits & 1) << 31;
  const auto field = static_cast<std::uint32_t>(exponent + 127) << significand_bits;
  return std::bit_cast<float>(sign | field | fraction);
}

double leading_zeros_probability(int n, HighPart high) {
  if (n < -1 || n > max_zeros) return 0;
  if (n == -1) return power_of_half(residual_bits + 1);  // ties: every second one is rounded up
  if (n < max_zeros) return power_of_half(n + 2);
  return high == HighPart::truncated ? power_of_half(residual_bits) : 0;
}

double underflow_probability(int exponent, int residual_exponent) {
  return probability_below(smallest_subnormal, exponent, residual_exponent);
}

double underflow_or_gradual_probability(int exponent, int residual_exponent) {
  return probability_below(smallest_normal, exponent, residual_exponent);
}

UnderflowShares simulate_underflow(int exponent, int residual_exponent, std::int64_t samples,
                                   std::uint64_t seed) {
  if (exponent < -126 || exponent > core::fp16.max_exponent)
    core::fail(core::Status::invalid_argument, "exponent {} is not in -126...{}", exponent,
               core::fp16.max_exponent);
  measure::Random random(seed, static_cast<std::uint64_t>(exponent + 1024));
  const double share = 1 / static_cast<double>(samples);
  UnderflowShares shares;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const auto x = static_cast<double>(random_of_exponent(random, exponent));
    const double high = core::decode(core::fp16, core::encode(core::fp16, x));
    if (std::isinf(high)) {
      shares.overflowed += share;
      continue;
    }
    const double residual = x - high;
    const double stored = std::ldexp(residual, residual_exponent);
    const int leading =
        residual == 0 ? leading_exponent(exponent) - max_zeros + residual_exponent : std::ilogb(stored);
    shares.underflow += leading < smallest_subnormal ? share : 0;
    shares.underflow_or_gradual += leading < smallest_normal ? share : 0;
    shares.zero_residual += residual == 0 ? share : 0;
    const bool is_lost = core::decode(core::fp16, core::encode(core::fp16, stored)) == 0;
    shares.lost += residual != 0 && is_lost ? share : 0;
  }
  return shares;
}

RetainedAtExponent retained_at_exponent(const measure::SplitDescription& split, int exponent,
                                        std::int64_t samples, std::uint64_t seed) {
  const measure::RetainedBits bits(split);
  measure::Random random(seed, static_cast<std::uint64_t>(exponent + 1024));
  constexpr int significand = std::numeric_limits<float>::digits;
  RetainedAtExponent result{significand, significand, 0};
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const float x = random_of_exponent(random, exponent);
    const int kept = bits.of(x);
    result.fewest = std::min(result.fewest, kept);
    result.fewest_places = std::min(result.fewest_places, bits.places_of(x));
    result.mean += static_cast<double>(kept) / static_cast<double>(samples);
  }
  return result;
}

}  // namespace kintsugi::lab
