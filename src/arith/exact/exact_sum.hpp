// Exact sums of products.
//
// The accumulator is fixed-point and as wide as double's products need (U. Kulisch, "Computer
// Arithmetic and Validity"; R. Neal, "Fast exact summation using small and large superaccumulators",
// arXiv 1505.05571): 32-bit digits held in 64-bit integers, so that carries can wait.
#pragma once

#include <array>
#include <cstdint>

#include "arith/host_device.hpp"
#include "formats/format.hpp"

namespace kintsugi::core {

// A finite, non-zero number of any magnitude: fraction * 2^exponent with 0.5 <= |fraction| < 1.
// Zero is {0, 0}.
struct Scaled {
  double fraction = 0;
  std::int64_t exponent = 0;
};

// |a| / |b| for b not zero: within 2^-52 of it, infinite or (below 2^-1022) less exact where double ends.
KINTSUGI_HOST_DEVICE inline double magnitude_ratio(const Scaled& a, const Scaled& b) {
  constexpr std::int64_t most = 4000;
  const std::int64_t exponent = a.exponent - b.exponent;
  const double ratio = a.fraction / b.fraction;
  return times_power_of_two(ratio < 0 ? -ratio : ratio, static_cast<int>(exponent < -most  ? -most
                                                                         : exponent > most ? most
                                                                                           : exponent));
}

// The exact sum of any number up to 2^40 of products of two doubles, subnormal * subnormal and
// DBL_MAX * DBL_MAX included; the sum may then be multiplied by one more double, still exactly.
//
// Special values follow IEEE 754: once a NaN, an infinity minus an infinity or infinity * 0 went
// in, the sum is NaN; once only infinities of one sign went in, it is that infinity.
class ExactSum {
 public:
  // A product of floats is exact in double (48 bits), which makes this the quick path.
  void add_product(float a, float b) { add(static_cast<double>(a) * static_cast<double>(b)); }
  void add_product(double a, double b);
  void add(double x);
  void add(const ExactSum& other);
  // (-1)^negative integer 2^exponent; bits below 2^-3264 must be zero.
  void add_integer(std::uint64_t integer, int exponent, bool negative);

  // Sum += the dot product of two contiguous vectors of `count` elements.
  void add_products(const float* a, const float* b, std::int64_t count);
  void add_products(const double* a, const double* b, std::int64_t count);

  // Multiplies the sum by x, exactly. At most one such factor between two clear().
  void multiply(double x);
  void negate();
  void clear();

  // False when the sum is NaN or infinite.
  bool is_finite() const { return special_ == 0; }
  bool is_zero() const;
  // -1, 0 or 1; of an infinity its sign, of NaN 0.
  int sign() const;

  // Correctly rounded, once: nearest, ties to even, overflow to infinity, subnormals with the bits
  // they have. An exact zero is +0.
  double to_double() const;
  float to_float() const;
  // Rounded to 53 bits without a limit of exponents. Meaningless (zero) when the sum is not finite.
  Scaled to_scaled() const;
  // Exponent of the leading bit: 2^e <= |sum| < 2^(e + 1). The sum must be finite and not zero.
  std::int64_t exponent() const;

  static constexpr int digit_bits = 32;
  // The last bit has the weight 2^-3264: a digit that holds the last bit of two subnormals' product
  // (2^-2148) begins at 2^-2176 at the lowest, times 2^-1074 in multiply(). The top is 2^3264, above
  // 2^40 products of three times DBL_MAX (2^3112).
  static constexpr int digits_below_one = 102;
  static constexpr int digit_count = 2 * digits_below_one;
  // Position, counted from the accumulator's last bit, of 2^0.
  static constexpr int one_position = digits_below_one * digit_bits;
  // |sum| in digits of 32 bits, digit[first] ... digit[last] (last < first: zero).
  struct Magnitude {
    std::array<std::uint32_t, digit_count> digit;
    int first;
    int last;
    bool negative;
  };
  Magnitude magnitude() const;

 private:
  // An addition changes a digit by less than 2^33: 2^29 of them fit into 63 bits.
  static constexpr std::int64_t most_pending = std::int64_t{1} << 29;

  struct Rounded {
    std::uint64_t significand;
    int exponent;  // |sum| is about significand * 2^exponent
  };

  // Adds +-bits * 2^(position - one_position) to digits position / 32 to position / 32 + 2.
  void add_at(std::uint64_t bits, int position, bool negative);
  void touch(int first, int last);
  void count_additions(std::int64_t count);
  void carry();
  static int leading_position(const Magnitude& magnitude);
  static std::uint64_t bits_above(const Magnitude& magnitude, int position);
  static bool any_below(const Magnitude& magnitude, int position);
  static Rounded round(const Magnitude& magnitude, int significand_bits, int smallest_exponent);

  std::array<std::int64_t, digit_count> digit_{};
  int first_ = digit_count;  // digits outside first_...last_ are zero
  int last_ = -1;
  std::int64_t pending_ = 0;
  double special_ = 0;  // sum of the special values, 0 when there was none
};

}  // namespace kintsugi::core
