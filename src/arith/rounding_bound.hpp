// How far the integers of a vector may lie from what they stand for.
#pragma once

#include <algorithm>

#include "arith/host_device.hpp"

namespace kintsugi::core {

// Of a row of A or a column of B scaled and rounded to integers below 2^bits. Both are integers that double
// may have rounded: neither decides a bit of a result, only which way it is found.
struct RoundingBound {
  double inexact = 0;     // elements that rounding changed, each by at most 1/2
  double magnitudes = 0;  // sum of the integers' magnitudes
};

// Bound of |sum of a_p b_p - sum of their integers' products|, in units of those. With a_p = a'_p + alpha_p,
// likewise b_p, it is |sum of alpha_p b'_p + beta_p a'_p + alpha_p beta_p|; alpha_p is zero but at a's
// inexact elements, where the |b'_p| add up to no more than all of them do, nor to more than their number
// times the largest.
KINTSUGI_HOST_DEVICE inline double largest_deviation(const RoundingBound& a, const RoundingBound& b,
                                                     double largest_a, double largest_b) {
  constexpr double carelessness = 1 + 0x1p-20;  // of the sums in double, k below 2^32
  const double of_a = std::min(a.inexact * largest_b, b.magnitudes * carelessness);
  const double of_b = std::min(b.inexact * largest_a, a.magnitudes * carelessness);
  const double exact_a = a.inexact == 0 ? 0 : of_a;
  const double exact_b = b.inexact == 0 ? 0 : of_b;
  return (0.5 * exact_a + 0.5 * exact_b + 0.25 * std::min(a.inexact, b.inexact)) * carelessness;
}

}  // namespace kintsugi::core
