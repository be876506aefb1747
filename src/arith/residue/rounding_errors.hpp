// Bounds of the error that rounding the elements of vectors to integers causes in their product, on the host
// (RoundingBound) and on devices (RoundingErrors).
#pragma once

#include <algorithm>
#include <cstdint>

#include "arith/host_device.hpp"
#include "arith/range.hpp"

namespace kintsugi::core {

// Two sums over one vector that was scaled and rounded to integers. A double may hold them rounded: they
// decide only whether a result is accepted or recomputed.
struct RoundingBound {
  double inexact = 0;     // number of elements that rounding changed, each by at most 1/2
  double magnitudes = 0;  // sum of the integers' magnitudes
};

// Bound of |sum of a_p b_p - sum of a'_p b'_p|, where a'_p and b'_p are the rounded integers. With a_p = a'_p
// + alpha_p and b_p = b'_p + beta_p the difference is |sum of alpha_p b'_p + beta_p a'_p + alpha_p beta_p|.
// |alpha_p| is at most 1/2, and zero for all but a.inexact elements. The sum of |b'_p| over these elements is
// at most b.magnitudes, and at most a.inexact times the largest |b'_p| (`largest_b`).
KINTSUGI_HOST_DEVICE inline double largest_deviation(const RoundingBound& a, const RoundingBound& b,
                                                     double largest_a, double largest_b) {
  constexpr double rounding_slack = 1 + 0x1p-20;  // covers rounding errors of sums in double for k < 2^32
  const double beside_inexact_a = std::min(a.inexact * largest_b, b.magnitudes * rounding_slack);
  const double beside_inexact_b = std::min(b.inexact * largest_a, a.magnitudes * rounding_slack);
  // An exact vector adds nothing, even if the other vector's sums are infinite or NaN.
  const double deviation_from_a = a.inexact == 0 ? 0 : beside_inexact_a;
  const double deviation_from_b = b.inexact == 0 ? 0 : beside_inexact_b;
  return (0.5 * deviation_from_a + 0.5 * deviation_from_b + 0.25 * std::min(a.inexact, b.inexact)) *
         rounding_slack;
}

// Rounding errors of a vector that was scaled and rounded to integers, as devices find them. They are sharper
// than the counts of the host's RoundingBound. The sums may be rounded: they decide only whether a result is
// accepted or recomputed.
struct RoundingErrors {
  double errors = 0;      // sum of the magnitudes of the elements' rounding errors
  double magnitudes = 0;  // sum of the integers' magnitudes
  double largest = 0;     // upper bound of the integers' magnitudes
};

// Upper bound of the magnitudes of a vector's scaled integers. The range must have its scale.
KINTSUGI_HOST_DEVICE inline double largest_integer(const VectorRange& range) {
  return (range.flags & VectorRange::all_zero) != 0 ? 0 : power_of_two(range.largest + range.scale + 1);
}

// Sums over an FP64 vector from which its rounding errors follow: magnitudes are summed when its norm is
// found, and errors when it is split.
struct VectorMagnitudes {
  static constexpr int error_bits = 32;

  double sum = 0;             // sum of the elements' magnitudes before they are scaled
  std::uint64_t errors = 0;   // sum of rounding errors under the split's scale, in units of 2^-error_bits
  std::uint32_t summed = 0;   // 1 if `sum` was found
  std::uint32_t counted = 0;  // 1 if the split has added its errors
};

// Rounding errors of a vector of `length` elements from these sums. The range has the scale of the split.
KINTSUGI_HOST_DEVICE inline RoundingErrors rounding_errors(const VectorMagnitudes& magnitudes,
                                                           const VectorRange& range, std::int64_t length) {
  constexpr double unit = power_of_two(-VectorMagnitudes::error_bits);
  if ((range.flags & VectorRange::all_zero) != 0) return {};
  double errors = static_cast<double>(magnitudes.errors) * unit;
  // Elements far below 1/2 may lose bits, or all of them, when they are scaled.
  constexpr int least_exponent = -960;
  if (range.smallest + range.scale < least_exponent) errors += unit;
  if (!range.finite()) errors = 0.5 * static_cast<double>(length);  // NaN and infinities have no errors
  return {errors, times_power_of_two(magnitudes.sum, range.scale) + errors, largest_integer(range)};
}

// Bound of |sum of a_p b_p - sum of a'_p b'_p|, where a'_p and b'_p are the rounded integers. With a_p = a'_p
// + alpha_p and b_p = b'_p + beta_p the difference is |sum of alpha_p b'_p + beta_p a'_p + alpha_p beta_p|,
// and |alpha_p| and |beta_p| are at most 1/2.
KINTSUGI_HOST_DEVICE inline double largest_deviation(const RoundingErrors& a, const RoundingErrors& b) {
  constexpr double rounding_slack = 1 + 0x1p-20;  // covers rounding errors of sums in double for k < 2^32
  const double beside_errors_of_a = std::min(a.errors * b.largest, 0.5 * b.magnitudes);
  const double beside_errors_of_b = std::min(b.errors * a.largest, 0.5 * a.magnitudes);
  // An exact vector adds nothing, even if the other vector's sums are infinite or NaN.
  const double deviation_from_a = a.errors == 0 ? 0 : beside_errors_of_a;
  const double deviation_from_b = b.errors == 0 ? 0 : beside_errors_of_b;
  return (deviation_from_a + deviation_from_b + 0.5 * std::min(a.errors, b.errors)) *
         (rounding_slack * rounding_slack);
}

}  // namespace kintsugi::core
