// The classes (NaN, infinities, finite) that an element of C = alpha A B + beta C may have, by the table of
// special values in docs/ARCHITECTURE.md. Written from the table, independently of src/recombine.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "base/view.hpp"

namespace kintsugi::test {

// A set of classes of numbers.
using Classes = unsigned;
inline constexpr Classes a_nan = 1, plus_infinity = 2, minus_infinity = 4, finite = 8;
inline constexpr Classes any_class = 15;

template <class T>
Classes class_of(T x) {
  if (std::isnan(x)) return a_nan;
  if (std::isinf(x)) return x > 0 ? plus_infinity : minus_infinity;
  return finite;
}

// Classes of the sum of two numbers of these classes: infinities of opposite signs give NaN.
inline Classes add(Classes x, Classes y) {
  Classes result = 0;
  if (((x | y) & a_nan) != 0) result |= a_nan;
  if ((x & plus_infinity && y & minus_infinity) || (x & minus_infinity && y & plus_infinity)) result |= a_nan;
  for (const Classes either : {plus_infinity, minus_infinity}) {
    if ((x & either && y & (finite | either)) || (y & either && x & (finite | either))) result |= either;
  }
  if ((x & finite) != 0 && (y & finite) != 0) result |= finite;
  return result;
}

// Classes of the product with a number that is not 0.
inline Classes times(Classes x, double factor) {
  if (std::isnan(factor)) return a_nan;
  if (factor > 0) return x;
  return (x & (a_nan | finite)) | ((x & plus_infinity) != 0 ? minus_infinity : 0) |
         ((x & minus_infinity) != 0 ? plus_infinity : 0);
}

// Special value of (A B)_ij: one infinite product is an infinity; two of different signs, an infinity times 0
// and any NaN are NaN. `finite` means that no factor is special. In a native product finite products beside
// an infinity may overflow to the infinity of the other sign.
template <class T>
Classes class_of_product(const core::MatrixView<T>& a, const core::MatrixView<T>& b, std::int64_t i,
                         std::int64_t j, bool natively) {
  Classes sum = finite;
  double finite_products = 0;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const T x = a(i, p);
    const T y = b(p, j);
    if (std::isnan(x) || std::isnan(y)) return a_nan;
    if (!std::isinf(x) && !std::isinf(y)) {
      finite_products += std::abs(static_cast<double>(x) * static_cast<double>(y));
      continue;
    }
    if (x == 0 || y == 0) return a_nan;
    sum = add(sum, (x > 0) == (y > 0) ? plus_infinity : minus_infinity);
  }
  const bool overflows = natively && finite_products > static_cast<double>(std::numeric_limits<T>::max()) / 2;
  return sum != finite && overflows ? sum | a_nan : sum;
}

// Properties of a finite sum: its sign, where the computed sum must have the same, and whether the sum or a
// product with alpha may overflow on the way.
struct FiniteSum {
  int sign = 0;            // sign of the exact sum
  bool decided = true;     // the computed sum has the same sign
  bool overflows = false;  // the computed sum may overflow
};

// Classes of alpha times a sum of these classes, alpha not 0.
inline Classes scaled_class(Classes product, const FiniteSum& sum, double alpha) {
  if (std::isnan(alpha)) return a_nan;
  if (product != finite) return times(product, alpha);
  if (std::isfinite(alpha)) return sum.overflows ? any_class : finite;
  if (!sum.decided) return any_class & ~finite;
  return sum.sign == 0 ? a_nan : times(plus_infinity, sum.sign * alpha);
}

// Classes of beta c, beta not 0; with `overflows` the product of two finite factors may be infinite.
inline Classes old_class(double beta, double c, bool overflows) {
  if (std::isnan(beta) || std::isnan(c)) return a_nan;
  if (!std::isfinite(beta) || !std::isfinite(c)) {
    if (beta == 0 || c == 0) return a_nan;
    return (beta > 0) == (c > 0) ? plus_infinity : minus_infinity;
  }
  return overflows ? any_class & ~a_nan : finite;
}

}  // namespace kintsugi::test
