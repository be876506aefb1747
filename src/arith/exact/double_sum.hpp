// Sums of doubles rounded once, where double arithmetic can tell how.
//
// The code needs rounding to nearest and no contraction to fused operations.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "arith/exact/exact_rounding.hpp"
#include "arith/exact/wide_integer.hpp"
#include "arith/host_device.hpp"
#include "formats/error_free.hpp"

namespace kintsugi::core {

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

}  // namespace kintsugi::core
