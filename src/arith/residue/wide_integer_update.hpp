// X u rounded once, in double arithmetic, for integers X of up to 158 bits. integer_update.hpp has the same
// for 126 bits.
//
// X is the sum of four doubles A + B + C + D, multiples of 2^120, 2^80, 2^40 and 1, with |B| <= 2^119 +
// 2^111, |C| <= 2^81 and |D| <= 2^47. They are added from the lowest to the uppermost, and every sum's
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
// - |A + b| >= |b| / 4, because A is 0 or at least 2^120 and |b| < 0.76 * 2^120. So the last bit of the
//   result is at least 2^49 g: doubles and ties of two doubles are multiples of 2 g there, as are b' and a.
//   It does not matter which of those numbers t is.
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

// X as the sum of four doubles.
struct WideIntegerParts {
  double top;     // a multiple of 2^120
  double upper;   // a multiple of 2^80 of at most 2^119 + 2^111 in magnitude
  double middle;  // a multiple of 2^40 of at most 2^81 in magnitude
  double lowest;  // an integer below 2^47 in magnitude

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

// Returns X u rounded once. If X is a multiple of 2^s, the exponent of u plus s must be at most
// max_ordinary_exponent in magnitude.
KINTSUGI_HOST_DEVICE inline double rounded_product(const WideIntegerParts& integer, double unit) {
  return std::fma(integer.rounded(), unit, 0.0);  // + 0.0 turns -0 into 0
}

}  // namespace kintsugi::core
