// Sums of FP64 products. Terms and scalars may exceed FP64's exponent range although the result does not.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "arith/exponent.hpp"
#include "arith/host_device.hpp"

namespace kintsugi::core {

// fraction * 2^exponent. |fraction| is 0 or in [1, 4) for a product, and arbitrary for a sum.
struct ScaledNumber {
  static constexpr int lowest = std::numeric_limits<int>::min() / 4;  // exponent of zero

  double fraction = 0;
  int exponent = lowest;
};

// x * y of finite numbers, rounded once.
KINTSUGI_HOST_DEVICE constexpr ScaledNumber scaled_product(double x, double y) {
  if (x == 0 || y == 0) return {};
  const int exponent_x = exponent_of(x);
  const int exponent_y = exponent_of(y);
  return {times_power_of_two(x, -exponent_x) * times_power_of_two(y, -exponent_y), exponent_x + exponent_y};
}

// x in units of 2^exponent; `exponent` is at least x.exponent. The result may underflow, which does no harm:
// its bits lie far below the last bit of a sum that has a term of this exponent.
KINTSUGI_HOST_DEVICE constexpr double in_units_of(const ScaledNumber& x, int exponent) {
  constexpr int lowest_shift = -2000;
  return x.fraction == 0 ? 0 : times_power_of_two(x.fraction, std::max(x.exponent - exponent, lowest_shift));
}

// Sum of at most four products, in order: each part of alpha (x + i y) + beta c has two or four. Factors may
// be infinite or NaN. Positions are template arguments, which keep the terms of a kernel in registers.
class ScaledTotal {
 public:
  template <int Position>
  KINTSUGI_HOST_DEVICE constexpr void add(double x, double y) {
    if (x - x == 0 && y - y == 0) {
      terms_[Position] = scaled_product(x, y);
    } else {
      special_ += x * y;
    }
  }
  template <int Position>
  KINTSUGI_HOST_DEVICE constexpr void add(const ScaledNumber& x, double y) {
    if (y - y == 0) {
      terms_[Position] = scaled_product(x.fraction, y);
      terms_[Position].exponent += x.fraction == 0 || y == 0 ? 0 : x.exponent;
    } else {
      special_ += y * (x.fraction == 0 ? 0 : x.fraction < 0 ? -1 : 1);
    }
  }

  // Returns the sum. Terms stay scaled until the last step. If any product is infinite or NaN, finite terms
  // are left out.
  template <class Real>
  KINTSUGI_HOST_DEVICE constexpr Real value() const {
    if (special_ != 0) return static_cast<Real>(special_);
    int highest = ScaledNumber::lowest;
    for (const ScaledNumber& term : terms_) highest = std::max(highest, term.exponent);
    double sum = 0;
    for (const ScaledNumber& term : terms_) sum += in_units_of(term, highest);
    return sum == 0 ? Real(0) : static_cast<Real>(times_power_of_two(sum, highest));
  }

 private:
  ScaledNumber terms_[4];
  double special_ = 0;
};

}  // namespace kintsugi::core
