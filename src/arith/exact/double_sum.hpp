// Sums of doubles and of products of doubles, rounded once where double arithmetic can tell how. The code
// needs rounding to nearest and no contraction to fused operations.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "base/rounding.hpp"
#include "formats/double_double.hpp"

namespace kintsugi::core {

// x + y rounded up.
KINTSUGI_HOST_DEVICE inline double sum_above(double x, double y) {
#ifdef __CUDA_ARCH__
  return __dadd_ru(x, y);
#else
  const ValueAndError<double> sum = two_sum(x, y);
  return sum.error > 0 ? std::nextafter(sum.value, std::numeric_limits<double>::infinity()) : sum.value;
#endif
}

// x + y rounded down.
KINTSUGI_HOST_DEVICE inline double sum_below(double x, double y) {
#ifdef __CUDA_ARCH__
  return __dadd_rd(x, y);
#else
  const ValueAndError<double> sum = two_sum(x, y);
  return sum.error < 0 ? std::nextafter(sum.value, -std::numeric_limits<double>::infinity()) : sum.value;
#endif
}

// x + y rounded to odd: if the sum is inexact, the last bit of the result is set. Of a result with two bits
// more than T, rounding to T gives what rounding of the exact sum gives (Boldo and Melquiond, Emulation of
// FMA and correctly rounded sums, IEEE Trans. Comput. 57, 2008).
KINTSUGI_HOST_DEVICE inline double sum_to_odd(double x, double y) {
#ifdef __CUDA_ARCH__
  // The sums rounded down and up are the same or neighbors, one of which is odd.
  const double down = __dadd_rd(x, y);
  return (__double2loint(down) & 1) != 0 ? down : __dadd_ru(x, y);
#else
  const ValueAndError<double> sum = two_sum(x, y);
  const auto pattern = std::bit_cast<std::uint64_t>(sum.value);
  const std::uint64_t odd = (sum.error > 0) == (sum.value > 0) ? pattern + 1 : pattern - 1;
  return std::bit_cast<double>(sum.error == 0 || (pattern & 1U) != 0 ? pattern : odd);
#endif
}

// x + y rounded once.
KINTSUGI_HOST_DEVICE inline double rounded_sum(double x, double y, RoundingMode rounding) {
  switch (rounding) {
    case RoundingMode::down: return sum_below(x, y);
    case RoundingMode::up: return sum_above(x, y);
    case RoundingMode::toward_zero: return x + y < 0 ? sum_above(x, y) : sum_below(x, y);
    default: return x + y;
  }
}

// A sum rounded once to T. The value counts only if it is certain.
template <class T>
struct CertainlyRounded {
  T value;
  bool is_certain;
};

// Sum of up to 64 doubles of at most 2^900 in magnitude. Three doubles hold the sum: the rounded one, the sum
// of its errors, and the sum of the errors of that sum. Only the last sum has errors of its own. A bound of
// them tells whether the exact sum rounds like the known one (Ziv, Fast evaluation of elementary mathematical
// functions with correctly rounded last bit, ACM Trans. Math. Softw. 17, 1991).
class DoubleSum {
 public:
  KINTSUGI_HOST_DEVICE void add(double x) {
    const ValueAndError<double> upper = two_sum(upper_, x);
    const ValueAndError<double> middle = two_sum(middle_, upper.error);
    upper_ = upper.value;
    middle_ = middle.value;
    lowest_ += middle.error;
    lowest_terms_ += std::fabs(middle.error);
  }
  // Adds x * y. The product must be 0, or at least 2^-900 in magnitude, so that its rounding error is exact.
  KINTSUGI_HOST_DEVICE void add_product(double x, double y) {
    const double product = x * y;
    const double error = std::fma(x, y, -product);
    add(product);
    if (error != 0) add(error);  // factors are often powers of two
  }

  // The sum times 2^exponent, for |exponent| <= 1000. A result that is not a normal double, or too close to
  // where rounding changes, is not certain. Zero gives +0.
  template <class T>
  KINTSUGI_HOST_DEVICE CertainlyRounded<T> rounded(int exponent) const {
    const ValueAndError<double> upper = two_sum(upper_, middle_);
    const double lower = upper.error + lowest_;
    // The sum of 64 terms has at most 63 rounding errors of 2^-53 of lowest_terms_ each. `lower` and the two
    // sums with `error` below have one each, of 2^-53 of their own magnitude. Without terms all are exact.
    const double error = lowest_terms_ == 0 ? 0 : 0x1p-47 * lowest_terms_ + 0x1p-51 * std::fabs(lower);
    const double least = sum(upper.value, lower - error, T());
    const double most = sum(upper.value, lower + error, T());
    const double unit = power_of_two(exponent);
    const T value = static_cast<T>(std::fma(least, unit, 0.0));  // + 0.0 turns -0 into 0
    const bool is_normal = least == 0 || std::fabs(least * unit) >= 0x1p-1021;
    return {value, is_normal && value == static_cast<T>(most * unit)};
  }

 private:
  // A sum that rounds to the type of the last argument like the exact one.
  KINTSUGI_HOST_DEVICE static double sum(double x, double y, double) { return x + y; }
  KINTSUGI_HOST_DEVICE static double sum(double x, double y, float) { return sum_to_odd(x, y); }

  double upper_ = 0;
  double middle_ = 0;
  double lowest_ = 0;
  double lowest_terms_ = 0;  // sum of the magnitudes of the terms of lowest_
};

// Adds x * factor to the sum. The factor must be at least 2^-700 in magnitude.
template <int Limbs>
KINTSUGI_HOST_DEVICE inline void add_multiple(DoubleSum& sum, const ExactNumber<Limbs>& x, double factor) {
  constexpr int piece_bits = 48;  // several pieces' sum fits into fewer doubles than limbs do
  const double signed_factor = x.negative ? -factor : factor;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (int first = 0; first < WideInteger<Limbs>::bits; first += piece_bits) {
    const std::uint64_t piece = x.magnitude.bits_from(first) & ((std::uint64_t{1} << piece_bits) - 1);
    if (piece != 0) sum.add_product(signed_factor, static_cast<double>(piece) * power_of_two(first));
  }
}

// Sums of products in two doubles, with a bound of their error: nearly all sums can be rounded once without
// an exact sum.
//
// Products and sums are split into rounded values and errors (Ogita, Rump and Oishi, Accurate sum and dot
// product, SIAM J. Sci. Comput. 26, 2005). The errors, two of each product, are added in double:
//   p + e = x y,  s' + q = s + p,  t = RN(e + q),  l' = RN(l + t).
// The sum is s + (sum of all e + q) exactly. With n terms t, each rounded once, added in any order, l differs
// from the sum of all e + q by at most n 2^-53 (1 + n 2^-52) (sum of |t|). The sum of |t| is computed as
// well; its own error is at most a share n 2^-53 of it.

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
  // normal double, or too close to where rounding changes, is not certain. Zero gives +0; it is not certain
  // rounded down. products < 2^32.
  KINTSUGI_HOST_DEVICE CertainlyRounded<double> rounded(std::int64_t products, double alpha, double beta,
                                                        double c,
                                                        RoundingMode rounding = RoundingMode::nearest) const {
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
    if (is_plain) return certainly_rounded(two_sum(sum_, errors_), deviation, rounding);
    const ValueAndError<double> product = product_of(alpha, sum_);
    const ValueAndError<double> old = product_of(beta, c);
    const ValueAndError<double> upper = two_sum(product.value, old.value);
    const double times_errors = alpha * errors_;
    const double rest = ((upper.error + product.error) + old.error) + times_errors;
    // `rest` has four roundings, of at most 2^-53 of the sum of the magnitudes each.
    const double magnitudes =
        std::fabs(upper.error) + std::fabs(product.error) + std::fabs(old.error) + std::fabs(times_errors);
    return certainly_rounded(two_sum(upper.value, rest),
                             std::fabs(alpha) * deviation * (1 + 0x1p-50) + 0x1p-50 * magnitudes +
                                 (magnitudes_ == 0 ? 0 : underflow),
                             rounding);
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
                                                                         double deviation,
                                                                         RoundingMode rounding) {
    const double least = rounded_sum(sum.value, sum_below(sum.error, -deviation), rounding);
    const double most = rounded_sum(sum.value, sum_above(sum.error, deviation), rounding);
    constexpr double smallest = 0x1p-1000;  // below it, errors of this function's sums could underflow
    const bool is_normal = std::fabs(least) >= smallest && std::fabs(least) <= 0x1p1020;
    const bool is_zero = least == 0 && most == 0 && deviation == 0 && rounding != RoundingMode::down;
    return {least + 0.0, (is_normal && least == most) || is_zero};
  }

  double sum_ = 0;         // s
  double errors_ = 0;      // l
  double magnitudes_ = 0;  // sum of |t|
};

}  // namespace kintsugi::core
