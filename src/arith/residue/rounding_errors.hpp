// Rounding errors of a vector that was scaled and rounded to integers, as devices find them. They are sharper
// than the counts of the host's RoundingBound (arith/rounding_bound.hpp).
#pragma once

#include <algorithm>

#include "arith/host_device.hpp"

namespace kintsugi::core {

// The sums may be rounded: they decide only whether a result is accepted or recomputed.
struct RoundingErrors {
  double errors = 0;      // sum of the magnitudes of the elements' rounding errors
  double magnitudes = 0;  // sum of the integers' magnitudes
  double largest = 0;     // upper bound of the integers' magnitudes
};

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
