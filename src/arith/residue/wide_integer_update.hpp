// X u + c rounded once, in double arithmetic, for integers X of up to 158 bits. integer_update.hpp has the
// same for 126 bits.
//
// X is the sum of four doubles A + B + C + D, multiples of 2^120, 2^80, 2^40 and 1, with |B| <= 2^119 +
// 2^111, |C| < 2^81 and |D| <= 2^47. They are added from the lowest to the uppermost, and every sum's
// rounding error is kept:
//   c + d = C + D,  b + c' = B + c,  a + b' = A + b.
// Each error takes three operations, because the first term of each sum is a multiple of the last bit of the
// second one: the last bits of D, c and b are at most 2^0, 2^29 and 2^68. So X = a + b' + c' + d exactly, and
// the result is
//   a + odd(b' + odd(c' + d)),
// where odd() rounds to odd. It is the exact one rounded once:
// - t = odd(c' + d). If c' is 0, t is d. Else c' is a multiple of the last bit of c, so |d| <= |c'| / 2, and
//   |t| <= 3/4 of the last bit of b. If t is inexact, its last bit g is set, all numbers that t stands for
//   lie between the same multiples of 2 g, and the last bit of b is at least 2^52 g.
// - |A + b| >= |b| / 4, because A is 0 or at least 2^120 and |b| < 0.51 * 2^120. So the last bit of the
//   result is at least 2^49 g: doubles and ties of two doubles are multiples of 2 g there, as are b' and a.
//   It does not matter which of those numbers t is.
// - v = odd(b' + t). If b' is 0, it is t. Else a is inexact, |a| >= 2^118, and its last bit is at least 2^66.
//   |b'| is at most half of that, and |t| is less, so v is exact, or its last bit is at most 2^-51 times
//   that of a, far below ties of a + v.
// Cancellation needs no search for a leading bit: a sum that cancels is exact.
//
// y = c / u of 2^40 to 2^170 in magnitude is a multiple of 2^-12. It is cut at the same bits, and its parts,
// of at most half a unit of the next one, are added to those of X, whose |C| is below 2^80 - 2^47 as it comes
// from parts_of_pieces(). Before that the excess of D over 2^39 moves into C, and afterwards that of B over
// 2^119 into A. So D has at most 52 bits and is at most 2^40, |C| < 2^81, and the parts of the sum satisfy
// all that the proof needs.
//
// For other y, s + e = y + a exactly, and X + y = s + e + b' + c' + d. The last four are added in double;
// their sum differs from the exact one by at most 3 * 2^-53 of the sum of their magnitudes. The result is
// certain if both ends of this interval give the same double. It may not be if |y| is much smaller than |X|
// and X is at or near a tie of two doubles, as integers of 54 to 64 bits often are.
//
// The code needs rounding to nearest and no contraction to fused operations.
#pragma once

#include <cmath>

#include "arith/residue/integer_update.hpp"

namespace kintsugi::core {

// X, or X + y, as the sum of four doubles.
struct WideIntegerParts {
  double top;     // a multiple of 2^120
  double upper;   // a multiple of 2^80 of at most 2^119 + 2^111 in magnitude
  double middle;  // a multiple of 2^40 of at most 2^81 in magnitude
  double lowest;  // an integer, or a multiple of 2^-12, of at most 2^47 in magnitude

  // The same number as the sum of a, b', c' and d.
  struct Sums {
    double sum;              // a
    double error_of_top;     // b'
    double error_of_upper;   // c'
    double error_of_middle;  // d

    KINTSUGI_HOST_DEVICE double rounded() const {
      return sum + sum_to_odd(error_of_top, sum_to_odd(error_of_upper, error_of_middle));
    }
  };
  KINTSUGI_HOST_DEVICE Sums sums() const {
    const double c = middle + lowest;
    const double b = upper + c;
    const double a = top + b;
    return {a, b - (a - top), c - (b - upper), lowest - (c - middle)};
  }
  KINTSUGI_HOST_DEVICE double rounded() const { return sums().rounded(); }
};

// Returns X u rounded once. If X is a multiple of 2^s, the exponent of u plus s must be at most
// max_ordinary_exponent in magnitude.
KINTSUGI_HOST_DEVICE inline double rounded_product(const WideIntegerParts& integer, double unit) {
  return std::fma(integer.rounded(), unit, 0.0);  // + 0.0 turns -0 into 0
}

namespace update_detail {

// X + y for 2^40 <= |y| < 2^170 or y = 0.
KINTSUGI_HOST_DEVICE inline WideIntegerParts sum_of_parts(const WideIntegerParts& x, double y) {
  const double top = nearest_multiple<120>(y);
  const double below_top = y - top;
  const double upper = nearest_multiple<80>(below_top);
  const double below_upper = below_top - upper;
  const double middle = nearest_multiple<40>(below_upper);
  const double excess_of_lowest = nearest_multiple<40>(x.lowest);
  const double upper_sum = x.upper + upper;
  const double excess_of_upper = nearest_multiple<120>(upper_sum);
  return {(x.top + top) + excess_of_upper, upper_sum - excess_of_upper,
          (x.middle + excess_of_lowest) + middle, (x.lowest - excess_of_lowest) + (below_upper - middle)};
}

// X + y rounded once, for |y| < 2^220.
KINTSUGI_HOST_DEVICE inline CertainlyRounded<double> sum_of_unlike_magnitudes(const WideIntegerParts& x,
                                                                              double y) {
  const WideIntegerParts::Sums sums = x.sums();
  const ValueAndError<double> sum = two_sum(y, sums.sum);
  const double rest = sum.error + (sums.error_of_top + (sums.error_of_upper + sums.error_of_middle));
  const double magnitudes = std::fabs(sum.error) + std::fabs(sums.error_of_top) +
                            std::fabs(sums.error_of_upper) + std::fabs(sums.error_of_middle);
  const double deviation =
      0x1p-50 * magnitudes;  // covers the errors of rest, of itself and of the next two sums
  const double least = sum.value + (rest - deviation);
  return {least, least == sum.value + (rest + deviation)};
}

}  // namespace update_detail

// X u + c rounded once, for the same u as rounded_product(); c if it is infinite or NaN. `inverse` is 1 / u.
// The result may be uncertain for an old element of unlike magnitude, and is for 0 < |c| < 2^-900 |u|.
KINTSUGI_HOST_DEVICE inline CertainlyRounded<double> rounded_update(const WideIntegerParts& integer,
                                                                    double unit, double inverse, double c) {
  using namespace update_detail;
  const double old = c * inverse;
  // + 0.0 turns -0 into 0.
  if (is_between<40, 170>(old) || c == 0)
    return {std::fma(sum_of_parts(integer, old).rounded(), unit, 0.0), true};
  // |X| < 2^158 is less than a quarter of the last bit of such an element.
  if (!(std::fabs(old) < 0x1p220)) return {c, true};
  const CertainlyRounded<double> sum = sum_of_unlike_magnitudes(integer, old);
  return {std::fma(sum.value, unit, 0.0), sum.is_certain && std::fabs(old) >= 0x1p-900};
}

}  // namespace kintsugi::core
