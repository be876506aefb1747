// X u + c rounded once, in double arithmetic, for integers X of up to 158 bits. integer_update.hpp has the
// same for 126 bits.
//
// X is the sum of four doubles A + B + C + D, multiples of 2^120, 2^80, 2^40 and 2^-12, with |B| <= 2^119 +
// 2^111, |C| <= 2^81 and |D| <= 2^47. They are added from the lowest to the uppermost, and every sum's
// rounding error is kept:
//   c + d = C + D,  b + c' = B + c,  a + b' = A + b.
// Each error takes three operations, because the first term of each sum is a multiple of the last bit of the
// second one: the last bits of D, c and b are at most 2^0, 2^29 and 2^68. So X = a + b' + c' + d exactly, and
// the result is
//   a + odd(b' + odd(c' + d)),
// where odd() rounds to odd. It is the exact one rounded once:
// - t = odd(c' + d). If c' is 0, t is d. Else c' is a multiple of the last bit of c, so |d| <= |c'| / 2, and
//   |t| <= 3/4 of the last bit of b. If t is inexact, its last bit g is set, all numbers that t stands for lie
//   between the same multiples of 2 g, and the last bit of b is at least 2^52 g.
// - |A + b| >= |b| / 4, because A is 0 or at least 2^120 and |b| < 0.76 * 2^120. So the last bit of the result
//   is at least 2^49 g: doubles and ties of two doubles are multiples of 2 g there, as are b' and a. It does
//   not matter which of those numbers t is.
// - v = odd(b' + t). If b' is 0, it is t. Else a is inexact, |a| >= 2^118, and its last bit is at least 2^66.
//   |b'| is at most half of that, and |t| is less, so v is exact, or its last bit is at most 2^-51 times
//   that of a, far below ties of a + v.
// Cancellation needs no search for a leading bit: a sum that cancels is exact.
//
// The code needs rounding to nearest and no contraction to fused operations.
#pragma once

#include <cmath>

#include "arith/residue/integer_update.hpp"

namespace kintsugi::core {

// X, or X + c / u, as the sum of four doubles.
struct WideIntegerParts {
  double top;     // a multiple of 2^120
  double upper;   // a multiple of 2^80 of at most 2^119 + 2^111 in magnitude
  double middle;  // a multiple of 2^40 of at most 2^81 in magnitude
  double lowest;  // a multiple of 2^-12 below 2^47 in magnitude

  KINTSUGI_HOST_DEVICE double rounded() const {
    const double c = middle + lowest;
    const double d = lowest - (c - middle);
    const double b = upper + c;
    const double error_of_b = c - (b - upper);
    const double a = top + b;
    const double error_of_a = b - (a - top);
    return a + sum_to_odd(error_of_a, sum_to_odd(error_of_b, d));
  }
};

// Adds X * factor to the sum. The factor must be at least 2^-700 in magnitude.
KINTSUGI_HOST_DEVICE inline void add_multiple(DoubleSum& sum, const WideIntegerParts& x, double factor) {
  sum.add_product(x.top, factor);
  sum.add_product(x.upper, factor);
  sum.add_product(x.middle, factor);
  sum.add_product(x.lowest, factor);
}

// Returns X u rounded once. If X is a multiple of 2^s, the exponent of u plus s must be at most
// max_ordinary_exponent in magnitude.
KINTSUGI_HOST_DEVICE inline double rounded_product(const WideIntegerParts& integer, double unit) {
  return std::fma(integer.rounded(), unit, 0.0);  // + 0.0 turns -0 into 0
}

// True if rounded_update() takes c and `old`, which is c / u or what underflow has left of it.
KINTSUGI_HOST_DEVICE constexpr bool is_like_wide_integer(double c, double old) {
  return c == 0 || update_detail::is_between<40, 160>(old);
}

// Returns X u + c rounded once, for the same u as rounded_product(). `old` is c / u, and
// is_like_wide_integer(c, old) must be true. X's lowest part must be an integer.
KINTSUGI_HOST_DEVICE inline double rounded_update(const WideIntegerParts& x, double unit, double old) {
  using namespace update_detail;
  // An `old` of 2^40 or more is a multiple of 2^-12. All sums of parts are exact: they have at most 53 bits.
  const double old_top = nearest_multiple<120>(old);
  const double below_120 = old - old_top;
  const double old_upper = nearest_multiple<80>(below_120);
  const double below_80 = below_120 - old_upper;
  const double old_middle = nearest_multiple<40>(below_80);
  const double excess = nearest_multiple<40>(x.lowest);  // the rest is at most 2^39
  const double upper = x.upper + old_upper;
  const double carry = nearest_multiple<120>(upper);  // the rest is at most 2^119
  const WideIntegerParts sum{x.top + old_top + carry, upper - carry, x.middle + excess + old_middle,
                             (x.lowest - excess) + (below_80 - old_middle)};
  return std::fma(sum.rounded(), unit, 0.0);
}

}  // namespace kintsugi::core
