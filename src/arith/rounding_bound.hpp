// Bounds of what rounding a vector's elements to integers changes in a product.
#pragma once

#include <algorithm>

#include "arith/host_device.hpp"

namespace kintsugi::core {

// Bounds of a row of A or a column of B scaled and rounded to integers below 2^bits. Both members are
// integers that double may have rounded: they decide by which way a result is found, and none of its bits.
struct RoundingBound {
  double inexact = 0;     // number of elements that rounding changed, each by at most 1/2
  double magnitudes = 0;  // sum of the integers' magnitudes
};

// Bound of |sum of a_p b_p - sum of products of their integers|, in units of the integers' products. With a_p
// = a'_p + alpha_p, and b_p likewise, the difference is |sum of alpha_p b'_p + beta_p a'_p + alpha_p beta_p|;
// alpha_p is zero except at the inexact elements of a, where the |b'_p| add up to at most the sum of all of
// them, and to at most their number times the largest.
KINTSUGI_HOST_DEVICE inline double largest_deviation(const RoundingBound& a, const RoundingBound& b,
                                                     double largest_a, double largest_b) {
  constexpr double rounding_slack = 1 + 0x1p-20;  // covers the rounding of sums in double, k below 2^32
  const double deviation_from_a = std::min(a.inexact * largest_b, b.magnitudes * rounding_slack);
  const double deviation_from_b = std::min(b.inexact * largest_a, a.magnitudes * rounding_slack);
  const double exact_a = a.inexact == 0 ? 0 : deviation_from_a;
  const double exact_b = b.inexact == 0 ? 0 : deviation_from_b;
  return (0.5 * exact_a + 0.5 * exact_b + 0.25 * std::min(a.inexact, b.inexact)) * rounding_slack;
}

}  // namespace kintsugi::core
