// Converts to a format by MPFR, an independent library: its precision and exponent range are set to
// the format's, and mpfr_subnormalize gives gradual underflow. All tests of formats compare with it.
#pragma once

#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "formats/formats.hpp"

namespace kintsugi::core::testing {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// Largest finite value as the specifications print it, not as format.hpp computes it.
inline double largest_finite(const Format& format) {
  switch (format.id) {
    case FormatId::fp16: return 65504;
    case FormatId::bf16: return 0x1.fep127;
    case FormatId::tf32: return 0x1.ffcp127;
    case FormatId::fp8_e4m3: return 448;
    case FormatId::fp8_e5m2: return 57344;
    case FormatId::int8: return 127;
    case FormatId::int52: return 0x1p51 - 1;
    case FormatId::fp32: return std::numeric_limits<float>::max();
    case FormatId::fp64: break;
  }
  return std::numeric_limits<double>::max();
}

// Sets MPFR's exponent range for its lifetime. MPFR's significands lie in [1/2, 1).
class ExponentRange {
 public:
  explicit ExponentRange(const Format& format) : emin_(mpfr_get_emin()), emax_(mpfr_get_emax()) {
    mpfr_set_emin(format.min_exponent - (format.significand_bits - 1) + 1);
    mpfr_set_emax(format.max_exponent + 1);
  }
  ~ExponentRange() {
    mpfr_set_emin(emin_);
    mpfr_set_emax(emax_);
  }
  ExponentRange(const ExponentRange&) = delete;
  ExponentRange& operator=(const ExponentRange&) = delete;

 private:
  mpfr_exp_t emin_;
  mpfr_exp_t emax_;
};

// x rounded to the format by MPFR, nearest even or towards zero.
class Reference {
 public:
  Reference(const Format& format, Rounding rounding)
      : format_(format), towards_zero_(rounding == Rounding::towards_zero), range_(format) {
    mpfr_init2(value_, format.significand_bits);
  }
  ~Reference() { mpfr_clear(value_); }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  double operator()(double x) {
    if (std::isnan(x)) return not_a_number;
    if (std::isinf(x)) return std::copysign(overflow_value(), x);
    const mpfr_rnd_t mode = towards_zero_ ? MPFR_RNDZ : MPFR_RNDN;
    const int inexact = mpfr_set_d(value_, x, mode);
    mpfr_subnormalize(value_, inexact, mode);
    const double rounded = mpfr_get_d(value_, MPFR_RNDN);
    // e4m3 has NaN's pattern in place of 480, so values below 2^9 can be too large for the format too.
    if (std::fabs(rounded) <= largest_finite(format_)) return rounded;
    return std::copysign(towards_zero_ ? largest_finite(format_) : overflow_value(), x);
  }

 private:
  double overflow_value() const { return format_.id == FormatId::fp8_e4m3 ? not_a_number : infinity; }

  const Format& format_;
  bool towards_zero_;
  ExponentRange range_;
  mpfr_t value_;
};

// Compares bits, so that -0 differs from +0; all NaN count as equal.
inline bool same_value(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

struct Mismatch {
  double input;
  double expected;
  double got;
};

// Returns the first of the inputs, of either sign, for which convert(x) and reference(x) differ.
template <class Convert, class Expected>
std::optional<Mismatch> find_mismatch(const std::vector<double>& inputs, Convert convert,
                                      Expected&& reference) {
  for (const double input : inputs) {
    for (const double x : {input, -input}) {
      const double expected = reference(x);
      const double got = convert(x);
      if (!same_value(expected, got)) return Mismatch{x, expected, got};
    }
  }
  return std::nullopt;
}

// Every non-negative value of the format, every midpoint between neighbours (and between the largest
// and what would follow it), and the doubles next to all of these.
inline std::vector<double> neighbourhoods(const Format& format) {
  std::vector<double> points;
  const auto add = [&points](double x) {
    points.push_back(x);
    points.push_back(std::nextafter(x, 0));
    points.push_back(std::nextafter(x, infinity));
  };
  const double largest = largest_finite(format);
  const double quantum = std::ldexp(1.0, format.min_exponent - (format.significand_bits - 1));
  double value = 0;
  while (value <= largest) {
    const int exponent = value == 0 ? format.min_exponent : std::max(std::ilogb(value), format.min_exponent);
    const double unit = std::max(quantum, std::ldexp(1.0, exponent - (format.significand_bits - 1)));
    add(value);
    add(value + unit / 2);
    value += unit;
  }
  add(value);  // the first that is too large
  add(2 * largest);
  return points;
}

}  // namespace kintsugi::core::testing
