// Bounds of the error that rounding the elements of vectors to integers causes in their product.
#pragma once

#include <algorithm>

#include "arith/host_device.hpp"

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

}  // namespace kintsugi::core
