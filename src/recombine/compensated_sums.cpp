#include "recombine/compensated_sums.hpp"

#include <cmath>
#include <type_traits>

#include "arith/exact/double_sum.hpp"
#include "base/vectorised.hpp"

namespace kintsugi::core {

namespace {

// Smallest and largest magnitude of non-zero scalars, and smallest magnitude of a non-zero product of alpha
// or beta: its rounding error is then exact.
constexpr double smallest_scalar = 0x1p-200;
constexpr double largest_scalar = 0x1p200;
constexpr double smallest_product = 0x1p-900;
// Smallest and largest magnitude of a result. Below it, errors of the sums here could underflow.
constexpr double smallest_result = 0x1p-1000;
constexpr double largest_result = 0x1p1020;
constexpr double underflow = 0x1p-1060;  // more than the products below lose to underflow

bool is_moderate(double scalar) {
  return scalar == 0 || (std::fabs(scalar) >= smallest_scalar && std::fabs(scalar) <= largest_scalar);
}

// Returns x rounded in the direction, which is not to nearest.
template <class T>
T narrowed(double x, RoundingMode rounding) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const T nearest = static_cast<T>(x);
  if (rounding == RoundingMode::toward_zero) rounding = x < 0 ? RoundingMode::up : RoundingMode::down;
  if (rounding == RoundingMode::down)
    return static_cast<double>(nearest) > x ? std::nextafter(nearest, -infinity) : nearest;
  return static_cast<double>(nearest) < x ? std::nextafter(nearest, infinity) : nearest;
}

// The sum is s + l, where the errors' sum l deviates by at most 2 k 2^-53 (1 + 2^-18) times the sum of the
// errors' magnitudes: see CompensatedSum of arith/exact. It is multiplied by alpha and added to beta c:
//
//   p + p' = alpha s,   q + q' = beta c,   u + u' = p + q,   r = RN(u' + p' + q' + RN(alpha l)).
//
// r has at most four roundings, of at most 2^-53 of the sum of the magnitudes each. With v + v' = u + r, the
// exact result lies within a deviation d of v + v'. If no number between v + (v' - d) and v + (v' + d) rounds
// to another value than both ends, the value is certain. d is a little larger than the deviation, because
// v' - d and v' + d are rounded.
//
// A float is not rounded from the ends, since these are rounded to double themselves. They are moved outwards
// by more than this rounding, unless v is the exact result.
//
// Rounding in a direction, to double and then to float, is rounding once in this direction. Representable
// numbers are its boundaries, so that an exact result is proved by d = 0 alone.
template <bool directed, class T>
[[gnu::always_inline]] inline void round_sum(double s, double l, double magnitudes, double alpha, double beta,
                                             double c, double factor, RoundingMode rounding, T& value,
                                             std::uint64_t& certain) {
  const double p = alpha * s;
  const double p_error = std::fma(alpha, s, -p);
  const double q = beta * c;
  const double q_error = std::fma(beta, c, -q);
  const double u = p + q;
  const double u_part = u - p;
  const double u_error = (p - (u - u_part)) + (q - u_part);
  const double scaled_errors = alpha * l;
  const double r = ((u_error + p_error) + q_error) + scaled_errors;
  const double rounded =
      std::fabs(u_error) + std::fabs(p_error) + std::fabs(q_error) + std::fabs(scaled_errors);
  const double v = (u + r) + 0.0;  // turns -0 into 0
  const double v_part = v - u;
  const double v_error = (u - (v - v_part)) + (r - v_part);
  const double deviation = magnitudes * factor + rounded * 0x1p-50;
  const double widened = deviation * (1 + 0x1p-50) + std::fabs(v_error) * 0x1p-50 + underflow;
  // Without branches, so that the compiler vectorizes the loop.
  const double has_deviation = magnitudes + rounded == 0 ? 0.0 : 1.0;
  const double d = has_deviation * widened;
  T least;
  T most;
  if constexpr (directed) {
    least = narrowed<T>(rounded_sum(v, v_error - d, rounding), rounding);
    most = narrowed<T>(rounded_sum(v, v_error + d, rounding), rounding);
  } else {
    double outward = 0;
    if constexpr (std::is_same_v<T, float>) {
      const double is_inexact = magnitudes + rounded + std::fabs(v_error) == 0 ? 0.0 : 1.0;
      outward = is_inexact * (std::fabs(v) * 0x1p-51);
    }
    least = static_cast<T>((v - outward) + (v_error - d));
    most = static_cast<T>((v + outward) + (v_error + d));
  }
  const double magnitude = std::fabs(v);
  const auto holds = [](bool condition) { return static_cast<std::uint64_t>(condition); };
  // A float may underflow to zero; only numbers on one side of zero have its sign.
  const std::uint64_t is_normal =
      holds(magnitude >= smallest_result) & holds(magnitude <= largest_result) & holds(least != 0);
  const std::uint64_t is_zero = holds(magnitude == 0) & holds(d == 0) & holds(rounding != RoundingMode::down);
  const std::uint64_t has_normal_p = holds(std::fabs(p) >= smallest_product) | holds(s == 0);
  const std::uint64_t has_normal_q =
      holds(std::fabs(q) >= smallest_product) | holds(c == 0) | holds(beta == 0);
  value = least;
  certain = holds(least == most) & (is_normal | is_zero) & has_normal_p & has_normal_q;
}

double deviation_factor(const SumScalars& scalars) {
  return 2 * static_cast<double>(scalars.products) * 0x1p-53 * (1 + 0x1p-18) * std::fabs(scalars.alpha);
}

template <bool directed, class T>
[[gnu::always_inline]] inline void round_all(const CompensatedSums& sums, std::int64_t count, double alpha,
                                             double beta, double factor, RoundingMode rounding, const T* c,
                                             T* values, std::uint64_t* certain) {
  if (c == nullptr) {
    for (std::int64_t i = 0; i < count; ++i)
      round_sum<directed>(sums.sum[i], sums.errors[i], sums.magnitudes[i], alpha, 0, 0, factor, rounding,
                          values[i], certain[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i)
      round_sum<directed>(sums.sum[i], sums.errors[i], sums.magnitudes[i], alpha, beta,
                          static_cast<double>(c[i]), factor, rounding, values[i], certain[i]);
  }
}

KINTSUGI_VECTORIZED_FMA void round_doubles(const CompensatedSums& sums, std::int64_t count, double alpha,
                                           double beta, double factor, const double* __restrict c,
                                           double* __restrict values, std::uint64_t* __restrict certain) {
  round_all<false>(sums, count, alpha, beta, factor, RoundingMode::nearest, c, values, certain);
}

KINTSUGI_VECTORIZED_FMA void round_floats(const CompensatedSums& sums, std::int64_t count, double alpha,
                                          double beta, double factor, const float* __restrict c,
                                          float* __restrict values, std::uint64_t* __restrict certain) {
  round_all<false>(sums, count, alpha, beta, factor, RoundingMode::nearest, c, values, certain);
}

}  // namespace

bool SumScalars::may_be_certain() const {
  constexpr std::int64_t max_products = std::int64_t{1} << 32;  // for the factor 1 + 2^-18
  return is_moderate(alpha) && is_moderate(beta) && products < max_products;
}

void round_sums(const CompensatedSums& sums, std::int64_t count, const SumScalars& scalars, const double* c,
                double* values, std::uint64_t* certain) {
  const double factor = deviation_factor(scalars);
  if (scalars.rounding == RoundingMode::nearest)
    return round_doubles(sums, count, scalars.alpha, scalars.beta, factor, c, values, certain);
  round_all<true>(sums, count, scalars.alpha, scalars.beta, factor, scalars.rounding, c, values, certain);
}

void round_sums(const CompensatedSums& sums, std::int64_t count, const SumScalars& scalars, const float* c,
                float* values, std::uint64_t* certain) {
  const double factor = deviation_factor(scalars);
  if (scalars.rounding == RoundingMode::nearest)
    return round_floats(sums, count, scalars.alpha, scalars.beta, factor, c, values, certain);
  round_all<true>(sums, count, scalars.alpha, scalars.beta, factor, scalars.rounding, c, values, certain);
}

}  // namespace kintsugi::core
