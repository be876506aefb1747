// Difference of an element from the native product's, by le-gemm's Eqs. 19 and 20, whose reference is that
// product and not the exact one. Computed in long double, so that no difference or sum of doubles overflows.
#pragma once

#include <cmath>
#include <limits>

namespace kintsugi::measure {

inline bool same_or_both_nan(double computed, double native) {
  return computed == native || (std::isnan(computed) && std::isnan(native));
}

// Eq. 19 for one element: |C - S| / (|C| + |S|); 0 if C and S are the same, infinite if one is special.
inline double symmetric_difference(double computed, double native) {
  if (same_or_both_nan(computed, native)) return 0;
  if (!std::isfinite(computed) || !std::isfinite(native)) return std::numeric_limits<double>::infinity();
  const long double c = computed;
  const long double s = native;
  return static_cast<double>(std::fabs(c - s) / (std::fabs(c) + std::fabs(s)));
}

// Eq. 20 for one element, signed: (C - S) / |S|; 0 if C and S are the same. Infinite with the sign of C - S
// if S is 0 or either is special.
inline double relative_difference(double computed, double native) {
  if (same_or_both_nan(computed, native)) return 0;
  const long double c = computed;
  const long double s = native;
  if (std::isfinite(computed) && std::isfinite(native)) return static_cast<double>((c - s) / std::fabs(s));
  return std::copysign(std::numeric_limits<double>::infinity(), computed - native);
}

}  // namespace kintsugi::measure
