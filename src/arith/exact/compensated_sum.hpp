// Sums of products in two doubles, with a bound of their error: nearly all sums can be rounded once without
// an exact sum.
//
// Products and sums are split into rounded values and errors (Ogita, Rump and Oishi, Accurate sum and dot
// product, SIAM J. Sci. Comput. 26, 2005). The errors, two of each product, are added in double:
//   p + e = x y,  s' + q = s + p,  t = RN(e + q),  l' = RN(l + t).
// The sum is s + (sum of all e + q) exactly. With n terms t, each rounded once, added in any order, l differs
// from the sum of all e + q by at most n 2^-53 (1 + n 2^-52) (sum of |t|). The sum of |t| is computed as
// well; its own error is at most a share n 2^-53 of it.
//
// The code needs rounding to nearest and no contraction to fused operations.
#pragma once

#include <cmath>
#include <cstdint>

#include "arith/exact/directed_sum.hpp"
#include "arith/exact/double_sum.hpp"
#include "arith/exponent.hpp"
#include "arith/host_device.hpp"
#include "formats/error_free.hpp"

namespace kintsugi::core {

namespace compensated_detail {

// True if x is 0, or if products with factors of similar size neither overflow nor lose bits to underflow.
KINTSUGI_HOST_DEVICE constexpr bool is_moderate(double x) {
  if (x == 0) return true;
  const int exponent = exponent_of(x);
  return -450 < exponent && exponent < 450;
}

}  // namespace compensated_detail

class CompensatedSum {
 public:
  // Adds x * y. No product and no sum may overflow, and no product may have bits below 2^-1074.
  KINTSUGI_HOST_DEVICE void add_product(double x, double y) {
    const double product = x * y;
    const double product_error = std::fma(x, y, -product);
    const ValueAndError<double> sum = two_sum(sum_, product);
    sum_ = sum.value;
    add_error(product_error + sum.error);
  }
  KINTSUGI_HOST_DEVICE void add(const CompensatedSum& other) {
    const ValueAndError<double> sum = two_sum(sum_, other.sum_);
    sum_ = sum.value;
    errors_ += other.errors_;
    magnitudes_ += other.magnitudes_;
    add_error(sum.error);
  }

  // The sum of `products` products times alpha, plus beta times c, rounded once. A result that is not a
  // normal double, or too close to where rounding changes, is not certain. Zero gives +0. products < 2^32.
  KINTSUGI_HOST_DEVICE CertainlyRounded<double> rounded(std::int64_t products, double alpha, double beta,
                                                        double c) const {
    using namespace compensated_detail;
    constexpr CertainlyRounded<double> uncertain{0, false};
    constexpr double underflow = 0x1p-1060;  // more than products below lose to underflow
    if (beta == 0) c = 0;
    const bool is_plain = alpha == 1 && beta == 0;
    if (!is_plain && !(is_moderate(alpha) && is_moderate(sum_) && is_moderate(beta) && is_moderate(c)))
      return uncertain;
    // Terms t: one of each product and one of each addition of two sums, of which there are fewer. The last
    // factor covers the errors of `deviation` and magnitudes_, since 2^33 2^-53 is 2^-20.
    const double terms = 2 * static_cast<double>(products);
    const double deviation = magnitudes_ == 0 ? 0 : terms * 0x1p-53 * magnitudes_ * (1 + 0x1p-18) + underflow;
    if (is_plain) return certainly_rounded(two_sum(sum_, errors_), deviation);
    const ValueAndError<double> product = product_of(alpha, sum_);
    const ValueAndError<double> old = product_of(beta, c);
    const ValueAndError<double> upper = two_sum(product.value, old.value);
    const double times_errors = alpha * errors_;
    const double rest = ((upper.error + product.error) + old.error) + times_errors;
    // `rest` has four roundings, of at most 2^-53 of the sum of the magnitudes each.
    const double magnitudes =
        std::fabs(upper.error) + std::fabs(product.error) + std::fabs(old.error) + std::fabs(times_errors);
    return certainly_rounded(two_sum(upper.value, rest), std::fabs(alpha) * deviation * (1 + 0x1p-50) +
                                                             0x1p-50 * magnitudes +
                                                             (magnitudes_ == 0 ? 0 : underflow));
  }

  // For exchange between threads.
  template <class Exchange>
  KINTSUGI_HOST_DEVICE CompensatedSum exchanged(const Exchange& exchange) const {
    CompensatedSum result;
    result.sum_ = exchange(sum_);
    result.errors_ = exchange(errors_);
    result.magnitudes_ = exchange(magnitudes_);
    return result;
  }

 private:
  KINTSUGI_HOST_DEVICE void add_error(double error) {
    errors_ += error;
    magnitudes_ += std::fabs(error);
  }

  KINTSUGI_HOST_DEVICE static ValueAndError<double> product_of(double x, double y) {
    const double product = x * y;
    return {product, std::fma(x, y, -product)};
  }

  // The double to which all numbers within `deviation` of sum.value + sum.error round.
  KINTSUGI_HOST_DEVICE static CertainlyRounded<double> certainly_rounded(const ValueAndError<double>& sum,
                                                                         double deviation) {
    const double least = sum.value + sum_below(sum.error, -deviation);
    const double most = sum.value - sum_below(-sum.error, -deviation);
    constexpr double smallest = 0x1p-1000;  // below it, errors of this function's sums could underflow
    const bool is_normal = std::fabs(least) >= smallest && std::fabs(least) <= 0x1p1020;
    const bool is_zero = least == 0 && most == 0 && deviation == 0;
    return {least + 0.0, (is_normal && least == most) || is_zero};
  }

  double sum_ = 0;         // s
  double errors_ = 0;      // l
  double magnitudes_ = 0;  // sum of |t|
};

}  // namespace kintsugi::core
