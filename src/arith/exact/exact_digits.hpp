// Exact sums of products in device code. The caller stores the digits in memory, since a thread has too few
// registers for them. The host's sums are in arith/exact/exact_sum.hpp.
//
// Digits have 53 bits and are kept in 64-bit integers. A product of two doubles changes three digits, a
// product of two floats two. Carries are propagated once in about a thousand products.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "arith/epilogue.hpp"
#include "arith/exact/exact_rounding.hpp"
#include "arith/host_device.hpp"
#include "arith/range.hpp"
#include "base/embedding.hpp"

namespace kintsugi::core {

// A finite number as (-1)^negative * significand * 2^exponent. The significand has at most 53 bits.
struct ExactFactor {
  std::uint64_t significand = 0;
  int exponent = 0;
  bool negative = false;
  bool finite = true;
};

KINTSUGI_HOST_DEVICE constexpr ExactFactor exact_factor(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto field = static_cast<int>(bits >> 52 & 0x7ffU);
  const std::uint64_t fraction = bits & 0xfffffffffffffU;
  return {field == 0 ? fraction : fraction | std::uint64_t{1} << 52, (field == 0 ? 1 : field) - 1075,
          bits >> 63 != 0, field != 0x7ff};
}

KINTSUGI_HOST_DEVICE constexpr ExactFactor exact_factor(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto field = static_cast<int>(bits >> 23 & 0xffU);
  const std::uint32_t fraction = bits & 0x7fffffU;
  return {field == 0 ? fraction : fraction | std::uint32_t{1} << 23, (field == 0 ? 1 : field) - 150,
          bits >> 31 != 0, field != 0xff};
}

// Bit positions and digit counts of two kinds of sums: `sum_` of up to 2^40 products of two finite T, and
// `result_` of such a sum times a third T.
template <class T>
struct ExactWidths {
  static constexpr int digit_bits = 53;
  static constexpr int lowest = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  static constexpr int factor_bits = std::numeric_limits<T>::max_exponent - lowest;

  // Digits that hold `bits` bits, one digit for carries and one for the sign.
  static constexpr int digits_for(int bits) { return (bits + digit_bits - 1) / digit_bits + 2; }

  static constexpr int sum_bottom = 2 * lowest;
  static constexpr int sum_digits = digits_for(2 * factor_bits + 40);
  // The 2 additional bits are for complex results: one part adds two products with alpha and two with beta.
  static constexpr int result_bottom = 3 * lowest;
  static constexpr int result_digits = digits_for(3 * factor_bits + 42);
};

// Digits that hold every sum of products of one row and one column. The lowest digit begins at 2^bottom. A
// digit of ExactWidths' sums begins there, too.
struct ExactWindow {
  int bottom = 0;
  int digits = 0;
};

// Returns the window for sums of `products` products of elements of two vectors with these ranges.
template <class T>
KINTSUGI_HOST_DEVICE constexpr ExactWindow exact_window(const VectorRange& row, const VectorRange& column,
                                                        std::int64_t products) {
  using Widths = ExactWidths<T>;
  if (((row.flags | column.flags) & VectorRange::all_zero) != 0)
    return {Widths::sum_bottom, Widths::digits_for(0)};
  const int lowest = row.smallest + column.smallest - 2 * (std::numeric_limits<T>::digits - 1);
  const int skipped_bits = lowest > Widths::sum_bottom ? lowest - Widths::sum_bottom : 0;
  const int bottom = Widths::sum_bottom + skipped_bits / Widths::digit_bits * Widths::digit_bits;
  const int sum_bits = 64 - leading_zeros(static_cast<std::uint64_t>(products));
  const int product_top = row.largest + column.largest + 2;  // every product is below 2^product_top
  return {bottom, Widths::digits_for(product_top + sum_bits - bottom)};
}

// Sum over d of digit d times 2^(53 d + bottom). Digits are `Stride` integers apart in memory; all are zero
// at first.
template <int Stride>
class ExactDigits {
 public:
  using TwoLimbs = WideInteger<2>::TwoLimbs;
  static constexpr int digit_bits = 53;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << digit_bits) - 1;
  // Largest number of additions between two carries. An addition changes a digit by less than 2^53, and
  // carry() leaves digits of at most 2^53.
  static constexpr int max_pending = 1020;

  KINTSUGI_HOST_DEVICE ExactDigits(std::int64_t* digits, int bottom) : digits_(digits), bottom_(bottom) {}

  KINTSUGI_HOST_DEVICE std::int64_t& operator[](int d) const { return digits_[d * Stride]; }

  // Digits outside first() ... last() are zero.
  KINTSUGI_HOST_DEVICE int first() const { return first_; }
  KINTSUGI_HOST_DEVICE int last() const { return last_; }
  KINTSUGI_HOST_DEVICE int bottom() const { return bottom_; }
  KINTSUGI_HOST_DEVICE void set_bounds(int first, int last) {
    first_ = first;
    last_ = last;
  }

  KINTSUGI_HOST_DEVICE void add_product(float x, float y) {
    const ExactFactor a = exact_factor(x);
    const ExactFactor b = exact_factor(y);
    const std::uint64_t product = a.significand * b.significand;  // 48 bits
    if (product != 0) add_short(product, a.exponent + b.exponent, a.negative != b.negative);
  }
  KINTSUGI_HOST_DEVICE void add_product(double x, double y) { add(exact_factor(x), exact_factor(y)); }

  KINTSUGI_HOST_DEVICE void add(const ExactFactor& a, const ExactFactor& b) {
    const TwoLimbs product = static_cast<TwoLimbs>(a.significand) * b.significand;  // 106 bits
    if (product != 0) add_long(product, a.exponent + b.exponent, a.negative != b.negative);
  }

  // Adds (-1)^negative * x * factor. x is a magnitude that make_magnitude() has computed.
  template <int OtherStride>
  KINTSUGI_HOST_DEVICE void add_multiple(const ExactDigits<OtherStride>& x, bool negative,
                                         const ExactFactor& factor) {
    if (factor.significand == 0) return;
    KINTSUGI_ROLLED
    for (int d = x.first(); d <= x.last(); ++d)
      add({.significand = static_cast<std::uint64_t>(x[d]),
           .exponent = x.bottom() + digit_bits * d,
           .negative = negative},
          factor);
  }

  // Propagates carries, which makes room for max_pending more additions. Afterwards all digits are in [0,
  // 2^53), except the last one, which has the sum's sign.
  KINTSUGI_HOST_DEVICE void carry() {
    constexpr std::int64_t base = std::int64_t{1} << digit_bits;
    KINTSUGI_ROLLED
    for (int d = first_; d < last_ || (d == last_ && (digit(d) >= base || digit(d) < -base)); ++d) {
      const std::int64_t over = digit(d) >> digit_bits;
      digit(d) -= over * base;
      if (over != 0) digit(d + 1) += over;
      if (d == last_) ++last_;
    }
    pending_ = 0;
  }

  // Replaces the sum by its magnitude, in digits of 53 bits without leading zero digits. Returns true if the
  // sum was negative. If the sum is zero, first() is above last().
  KINTSUGI_HOST_DEVICE bool make_magnitude() {
    carry();
    drop_zeros();
    const bool negative = first_ <= last_ && digit(last_) < 0;
    if (!negative) return false;
    KINTSUGI_ROLLED
    for (int d = first_; d <= last_; ++d) digit(d) = -digit(d);
    carry();
    drop_zeros();
    return true;
  }

  // The magnitude with the given sign, rounded once to T. make_magnitude() must have been called.
  template <class T>
  KINTSUGI_HOST_DEVICE T rounded_magnitude(bool negative,
                                           RoundingMode rounding = RoundingMode::nearest) const {
    if (first_ > last_) return zero_sum<T>(rounding);
    const auto high = static_cast<std::uint64_t>(digit(last_));
    const auto low = first_ < last_ ? static_cast<std::uint64_t>(digit(last_ - 1)) : std::uint64_t{0};
    const int fill = leading_zeros(high);  // bits that are taken from the digit below `high`; at least 11
    const int drop = fill < digit_bits ? digit_bits - fill : 0;
    bool sticky = (low & ((std::uint64_t{1} << drop) - 1)) != 0;
    KINTSUGI_ROLLED
    for (int d = first_; d < last_ - 1 && !sticky; ++d) sticky = digit(d) != 0;
    return rounded<T>(high << (digit_bits - drop) | low >> drop, bottom_ + digit_bits * (last_ - 1) + drop,
                      negative, sticky, rounding);
  }

  KINTSUGI_HOST_DEVICE void clear() {
    KINTSUGI_ROLLED
    for (int d = first_; d <= last_; ++d) digit(d) = 0;
    first_ = nothing;
    last_ = -1;
    pending_ = 0;
  }

 private:
  static constexpr int nothing = 1 << 20;

  KINTSUGI_HOST_DEVICE std::int64_t& digit(int d) const { return digits_[d * Stride]; }

  KINTSUGI_HOST_DEVICE void drop_zeros() {
    KINTSUGI_ROLLED
    while (last_ >= first_ && digit(last_) == 0) --last_;
  }

  KINTSUGI_HOST_DEVICE void count_addition(int first, int last) {
    if (++pending_ > max_pending) {
      carry();
      pending_ = 1;
    }
    first_ = first < first_ ? first : first_;
    last_ = last > last_ ? last : last_;
  }

  KINTSUGI_HOST_DEVICE static std::int64_t signed_digit(std::uint64_t digit, bool negative) {
    return negative ? -static_cast<std::int64_t>(digit) : static_cast<std::int64_t>(digit);
  }

  // Adds (-1)^negative * magnitude * 2^exponent, magnitude below 2^53.
  KINTSUGI_HOST_DEVICE void add_short(std::uint64_t magnitude, int exponent, bool negative) {
    const auto position = static_cast<unsigned>(exponent - bottom_);
    const auto d = static_cast<int>(position / digit_bits);
    const unsigned shift = position % digit_bits;
    count_addition(d, d + 1);
    digit(d) += signed_digit(magnitude << shift & mask, negative);
    digit(d + 1) += signed_digit(magnitude >> (digit_bits - shift), negative);
  }
  // Adds (-1)^negative * magnitude * 2^exponent, magnitude below 2^106. The magnitude is cut into halves of
  // 53 bits: a 128-bit shift by a variable count takes more instructions (nvcc 13.0 computes the results for
  // counts below and above 64, and selects one).
  KINTSUGI_HOST_DEVICE void add_long(TwoLimbs magnitude, int exponent, bool negative) {
    const auto position = static_cast<unsigned>(exponent - bottom_);
    const auto d = static_cast<int>(position / digit_bits);
    const unsigned shift = position % digit_bits;
    const std::uint64_t low = static_cast<std::uint64_t>(magnitude) & mask;
    const auto high = static_cast<std::uint64_t>(magnitude >> digit_bits);
    count_addition(d, d + 2);
    digit(d) += signed_digit(low << shift & mask, negative);
    digit(d + 1) += signed_digit(low >> (digit_bits - shift) | (high << shift & mask), negative);
    digit(d + 2) += signed_digit(high >> (digit_bits - shift), negative);
  }

  std::int64_t* digits_;
  int bottom_;
  int first_ = nothing;
  int last_ = -1;
  int pending_ = 0;
};

// Sign and magnitude of an exact sum of products, before scalars and rounding. The sum is a real element, or
// one part of a complex element.
struct ExactPart {
  ExactDigits<1> magnitude;
  bool negative;

  KINTSUGI_HOST_DEVICE int sign() const {
    return magnitude.first() > magnitude.last() ? 0 : negative ? -1 : 1;
  }
};

namespace exact_detail {

// Adds x * factor to the sum and returns 0. If x or factor is infinite or NaN, returns the product by IEEE
// 754 and adds nothing.
template <class T>
KINTSUGI_HOST_DEVICE T add_part(ExactDigits<1>& sum, const ExactPart& x, T factor) {
  const ExactFactor exact = exact_factor(factor);
  if (!exact.finite) return factor * static_cast<T>(x.sign());
  sum.add_multiple(x.magnitude, x.negative, exact);
  return 0;
}
template <class T>
KINTSUGI_HOST_DEVICE T add_part(ExactDigits<1>& sum, T x, T factor) {
  const ExactFactor left = exact_factor(x);
  const ExactFactor right = exact_factor(factor);
  if (!left.finite || !right.finite) return x * factor;
  sum.add(left, right);
  return 0;
}

// One part of alpha (x + i y) + beta c, as in arith/complex.hpp. The sum is computed in `digits`.
template <class T>
KINTSUGI_HOST_DEVICE T rounded_part(const ExactPart& same, const ExactPart& other, const Complex<T>& alpha,
                                    const Complex<T>& beta, T c_same, T c_other, std::int64_t* digits,
                                    RoundingMode rounding) {
  ExactDigits<1> sum(digits, ExactWidths<T>::result_bottom);
  T special = add_part(sum, same, alpha.real()) + add_part(sum, c_same, beta.real());
  if (alpha.imag() != 0) special = special + add_part(sum, other, alpha.imag());
  if (beta.imag() != 0) special = special + add_part(sum, c_other, beta.imag());
  const bool negative = sum.make_magnitude();
  const T result = special != 0 ? special : sum.rounded_magnitude<T>(negative, rounding);
  sum.clear();
  return result;
}

}  // namespace exact_detail

// alpha * x + beta * c rounded once, as in exact_rounding.hpp and complex.hpp. c is null when beta = 0.
// `digits` has ExactWidths<T>::result_digits digits, which are zero before and after the call.
template <class T>
KINTSUGI_HOST_DEVICE T exact_epilogue(const ExactPart& x, T alpha, T beta, const T* c, std::int64_t* digits,
                                      RoundingMode rounding = RoundingMode::nearest) {
  if (c == nullptr && alpha == T(1)) return x.magnitude.template rounded_magnitude<T>(x.negative, rounding);
  const ExactPart& unused = x;  // only read if alpha or beta has an imaginary part
  return exact_detail::rounded_part<T>(x, unused, alpha, beta, c == nullptr ? T(0) : *c, T(0), digits,
                                       rounding);
}

template <ComplexElement Z>
KINTSUGI_HOST_DEVICE Z exact_epilogue(const ExactPart& x, const ExactPart& y, const Z& alpha, const Z& beta,
                                      const Z* c, std::int64_t* digits,
                                      RoundingMode rounding = RoundingMode::nearest) {
  using T = RealOf<Z>;
  using Scalar = Complex<T>;
  const Z old = c == nullptr ? Z() : *c;
  // The real part subtracts the products of two imaginary parts; hence its scalars are conjugates.
  return {exact_detail::rounded_part<T>(x, y, Scalar(alpha.real(), -alpha.imag()),
                                        Scalar(beta.real(), -beta.imag()), old.real(), old.imag(), digits,
                                        rounding),
          exact_detail::rounded_part<T>(y, x, Scalar(alpha.real(), alpha.imag()),
                                        Scalar(beta.real(), beta.imag()), old.imag(), old.real(), digits,
                                        rounding)};
}

}  // namespace kintsugi::core
