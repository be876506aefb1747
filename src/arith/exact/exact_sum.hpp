// Exact sums of products.
//
// The accumulator is fixed-point and as wide as products of doubles need (U. Kulisch, "Computer Arithmetic
// and Validity"; R. Neal, "Fast exact summation using small and large superaccumulators", arXiv 1505.05571).
// Its 32-bit digits are held in 64-bit integers, so that carries can be postponed.
#pragma once

#include <array>
#include <cstdint>

#include "arith/host_device.hpp"
#include "base/rounding.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// A finite number of any magnitude: fraction * 2^exponent with 0.5 <= |fraction| < 1; {0, 0} for zero.
struct Scaled {
  double fraction = 0;
  std::int64_t exponent = 0;
};

// |a| / |b| with a relative error of 2^-52. b must not be zero. Results below 2^-1022 have larger errors;
// results beyond double's range are infinite.
KINTSUGI_HOST_DEVICE inline double magnitude_ratio(const Scaled& a, const Scaled& b) {
  constexpr std::int64_t max_exponent = 4000;
  const std::int64_t exponent = a.exponent - b.exponent;
  const double ratio = a.fraction / b.fraction;
  return times_power_of_two(ratio < 0 ? -ratio : ratio,
                            static_cast<int>(exponent < -max_exponent  ? -max_exponent
                                             : exponent > max_exponent ? max_exponent
                                                                       : exponent));
}

// The exact sum of up to 2^40 products of any two doubles. The sum may be multiplied by one more double,
// still exactly.
//
// Special values follow IEEE 754. The sum is NaN after a NaN, infinities of both signs, or infinity * 0;
// after infinities of one sign it is this infinity.
class ExactSum {
 public:
  // The product of two floats has 48 bits: it is exact in double, and adding one double is faster than adding
  // a product.
  void add_product(float a, float b) { add(static_cast<double>(a) * static_cast<double>(b)); }
  void add_product(double a, double b);
  void add(double x);
  void add(const ExactSum& other);
  // Adds (-1)^negative * integer * 2^exponent; bits below 2^-3264 must be zero.
  void add_integer(std::uint64_t integer, int exponent, bool negative);

  // Add the dot product of two contiguous vectors of `count` elements.
  void add_products(const float* a, const float* b, std::int64_t count);
  void add_products(const double* a, const double* b, std::int64_t count);

  // Multiplies the sum by x, exactly; at most once between two calls of clear().
  void multiply(double x);
  void negate();
  void clear();

  // False when the sum is NaN or infinite.
  bool is_finite() const { return special_ == 0; }
  bool is_zero() const;
  // -1, 0 or 1: the sign of the sum or of its infinity; 0 if the sum is NaN.
  int sign() const;

  // Returns the sum rounded once. Overflow gives infinity or the largest number, as the mode has it, an exact
  // zero zero_sum(), and subnormal results are rounded at their own last bit.
  double to_double(RoundingMode rounding = RoundingMode::nearest) const;
  float to_float(RoundingMode rounding = RoundingMode::nearest) const;
  // Returns the sum rounded to 53 bits, without limits on the exponent. Returns 0 if the sum is infinite or
  // NaN.
  Scaled to_scaled() const;
  // Exponent e of the leading bit: 2^e <= |sum| < 2^(e + 1). The sum must be finite and not zero.
  std::int64_t exponent() const;

  static constexpr int digit_bits = 32;
  // Digits below the radix point. The last bit has weight 2^-3264. The lowest bit of a product of two
  // subnormals is 2^-2148, in a digit that begins at 2^-2176 or above. multiply() can lower this by 2^-1074.
  // The sum of 2^40 products of three doubles is below 2^3112, and the top digit ends at 2^3264.
  static constexpr int digits_below_one = 102;
  static constexpr int digit_count = 2 * digits_below_one;
  // Position of 2^0, counted from the accumulator's last bit.
  static constexpr int one_position = digits_below_one * digit_bits;
  // |sum| in digits of 32 bits: digit[first] ... digit[last]. If last < first, the sum is zero.
  struct Magnitude {
    std::array<std::uint32_t, digit_count> digit;
    int first;
    int last;
    bool negative;
  };
  Magnitude magnitude() const;

 private:
  // Largest number of additions between two carries: each changes a digit by less than 2^33, and 2^29 of them
  // fit into 63 bits.
  static constexpr std::int64_t max_pending = std::int64_t{1} << 29;

  struct Rounded {
    std::uint64_t significand;
    int exponent;  // significand * 2^exponent approximates |sum|
  };

  // Adds bits * 2^(position - one_position), or subtracts it, in the digits position / 32 ... position / 32 +
  // 2.
  void add_at(std::uint64_t bits, int position, bool negative);
  void include_digits(int first, int last);
  void count_additions(std::int64_t count);
  void carry();
  static int leading_position(const Magnitude& magnitude);
  static std::uint64_t bits_above(const Magnitude& magnitude, int position);
  static bool any_below(const Magnitude& magnitude, int position);
  static Rounded round(const Magnitude& magnitude, int significand_bits, int smallest_exponent,
                       RoundingMode rounding);
  template <class T>
  T rounded_to(RoundingMode rounding) const;

  std::array<std::int64_t, digit_count> digit_{};
  int first_ = digit_count;  // digits outside first_ ... last_ are zero
  int last_ = -1;
  std::int64_t pending_ = 0;
  double special_ = 0;  // sum of all infinities and NaN that were added; 0 if there was none
};

}  // namespace kintsugi::core
