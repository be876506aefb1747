// Number formats of matrix engines, and their conversion from and to double.
//
// A Format is a description that encode() and decode() read, so that a new format is one constant. Everything
// is constexpr and, with a constant Format, compiles to plain bit arithmetic.
#pragma once

#include <bit>
#include <cstdint>

#include "base/bits.hpp"
#include "formats/format_id.hpp"

namespace kintsugi::core {

enum class Rounding : std::uint8_t {
  nearest_even,
  towards_zero,
  // The leading significand bits are copied and the exponent is re-biased (le-gemm, section 4.1). Normal
  // results are those of towards_zero. A value whose exponent is too small for the format becomes zero, since
  // there is no gradual underflow; one whose exponent is too large becomes the format's overflow value.
  bit_cut,
};

enum class Subnormals : std::uint8_t { keep, flush };

// Result for a magnitude that is too large. Exception: rounding towards zero gives the largest finite value
// in every format, as IEEE 754 requires.
enum class Overflow : std::uint8_t { infinity, nan, saturate };

struct Format {
  FormatId id;
  const char* name;
  bool floating;         // false: two's complement integers of `significand_bits` + 1 bits
  int significand_bits;  // including the implicit leading bit
  int exponent_bits;
  int min_exponent;  // 2^min_exponent is the smallest normal number
  int max_exponent;  // the largest finite number lies in [2^max_exponent, 2^(max_exponent + 1))
  int storage_bytes;
  int storage_shift;  // bits of storage below the pattern: 13 for tf32 in fp32
  Overflow overflow;
  // The all-ones exponent holds finite numbers, and only the all-ones pattern is NaN (fp8 e4m3).
  bool finite_top_exponent;

  constexpr int fraction_bits() const { return significand_bits - 1; }
  constexpr int bias() const { return 1 - min_exponent; }
  // 2^min_quantum() is the smallest subnormal.
  constexpr int min_quantum() const { return min_exponent - fraction_bits(); }
};

namespace format_detail {

struct Parts {
  bool negative;
  bool nan;
  bool infinite;
  int exponent;               // exponent of the leading bit
  std::uint64_t significand;  // 53 bits, leading bit set; 0 for zero
};

constexpr Parts take_apart(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int field = static_cast<int>(bits >> 52) & 0x7ff;
  const std::uint64_t fraction = bits & 0xfffffffffffffULL;
  Parts parts{.negative = (bits >> 63) != 0,
              .nan = false,
              .infinite = false,
              .exponent = field - 1023,
              .significand = fraction | (1ULL << 52)};
  if (field == 0x7ff) {
    parts.nan = fraction != 0;
    parts.infinite = fraction == 0;
  } else if (field == 0) {
    if (fraction == 0) {
      parts.significand = 0;
    } else {
      const int shift = leading_zeros(fraction) - 11;
      parts.significand = fraction << shift;
      parts.exponent = -1022 - shift;
    }
  }
  return parts;
}

// significand / 2^drop as an integer, rounded; drop >= 0.
constexpr std::uint64_t shift_right(std::uint64_t significand, int drop, Rounding rounding) {
  if (drop == 0) return significand;
  const std::uint64_t kept = drop < 64 ? significand >> drop : 0;
  if (rounding != Rounding::nearest_even || drop > 54) return kept;
  const std::uint64_t half = 1ULL << (drop - 1);
  const std::uint64_t low_bits = significand & ((half << 1) - 1);
  const bool up = low_bits > half || (low_bits == half && (kept & 1) != 0);
  return kept + (up ? 1 : 0);
}

constexpr std::uint64_t all_ones(int bits) { return ~0ULL >> (64 - bits); }  // bits in 1...64

constexpr std::uint64_t encode_integer(const Format& format, const Parts& parts, Rounding rounding) {
  const auto limit = static_cast<std::int64_t>(all_ones(format.significand_bits));
  const int drop = 52 - parts.exponent;
  std::int64_t magnitude = limit + 1;
  if (parts.nan || parts.significand == 0) {
    magnitude = 0;
  } else if (!parts.infinite && parts.exponent <= format.significand_bits) {
    magnitude = static_cast<std::int64_t>(shift_right(parts.significand, drop, rounding));
  }
  std::int64_t value = parts.negative ? -magnitude : magnitude;
  if (value > limit) value = limit;
  if (value < -limit - 1) value = -limit - 1;
  return static_cast<std::uint64_t>(value) & all_ones(8 * format.storage_bytes);
}

constexpr std::uint64_t largest_finite_pattern(const Format& format) {
  const std::uint64_t exponent = static_cast<std::uint64_t>(format.max_exponent + format.bias());
  const std::uint64_t fraction = all_ones(format.fraction_bits()) - (format.finite_top_exponent ? 1 : 0);
  return (exponent << format.fraction_bits()) | fraction;
}

// Quiet NaN. Its fraction is all ones if the format has only that NaN; else only its leading fraction bit is
// set.
constexpr std::uint64_t nan_pattern(const Format& format) {
  const int fraction_bits = format.fraction_bits();
  const std::uint64_t exponent = all_ones(format.exponent_bits) << fraction_bits;
  return exponent | (format.finite_top_exponent ? all_ones(fraction_bits) : 1ULL << (fraction_bits - 1));
}

constexpr std::uint64_t infinity_pattern(const Format& format) {
  return all_ones(format.exponent_bits) << format.fraction_bits();
}

// Pattern for a magnitude that is too large. `from_infinity` is true if the magnitude is infinite.
constexpr std::uint64_t overflow_pattern(const Format& format, Rounding rounding, bool from_infinity) {
  if (rounding == Rounding::towards_zero && !from_infinity) return largest_finite_pattern(format);
  switch (format.overflow) {
    case Overflow::infinity: return infinity_pattern(format);
    case Overflow::nan: return nan_pattern(format);
    case Overflow::saturate: break;
  }
  return largest_finite_pattern(format);
}

// Pattern of the magnitude of a finite, non-zero value.
constexpr std::uint64_t encode_magnitude(const Format& format, const Parts& parts, Rounding rounding,
                                         Subnormals subnormals) {
  const bool below_normal = parts.exponent < format.min_exponent;
  if (below_normal && rounding == Rounding::bit_cut) return 0;
  const int leading = below_normal ? format.min_exponent : parts.exponent;
  const int drop = leading - format.fraction_bits() - (parts.exponent - 52);
  const std::uint64_t rounded = shift_right(parts.significand, drop, rounding);
  // The significand with its implicit bit is added to the exponent field. The sum carries correctly, both
  // from the largest subnormal to the smallest normal number and from one binade to the next.
  const auto field = static_cast<std::uint64_t>(leading + format.bias() - 1);
  constexpr bool from_infinity = false;
  if (leading > format.max_exponent) return overflow_pattern(format, rounding, from_infinity);
  const std::uint64_t pattern = (field << format.fraction_bits()) + rounded;
  if (pattern > largest_finite_pattern(format)) return overflow_pattern(format, rounding, from_infinity);
  if (subnormals == Subnormals::flush && pattern < (1ULL << format.fraction_bits())) return 0;
  return pattern;
}

}  // namespace format_detail

// Bit pattern of x rounded to the format, at its position in storage. NaN gives a quiet NaN with sign 0
// (integers: 0). Infinity gives the format's overflow value.
constexpr std::uint64_t encode(const Format& format, double x, Rounding rounding = Rounding::nearest_even,
                               Subnormals subnormals = Subnormals::keep) {
  using namespace format_detail;
  const Parts parts = take_apart(x);
  if (!format.floating) return encode_integer(format, parts, rounding);
  std::uint64_t pattern = 0;
  if (parts.nan) return nan_pattern(format) << format.storage_shift;
  if (parts.infinite) {
    constexpr bool from_infinity = true;
    pattern = overflow_pattern(format, rounding, from_infinity);
  } else if (parts.significand != 0) {
    pattern = encode_magnitude(format, parts, rounding, subnormals);
  }
  const std::uint64_t sign = parts.negative ? 1ULL << (format.exponent_bits + format.fraction_bits()) : 0;
  return (sign | pattern) << format.storage_shift;
}

// 2^exponent for exponents of normal doubles, -1022...1023.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// x * 2^exponent with at most one rounding, for any exponent. Either all factors are above 1 or all are below
// 1. So a product that becomes subnormal or infinite on the way stays so.
constexpr double times_power_of_two(double x, int exponent) {
  constexpr int step = 1000;
  if (-step < exponent && exponent < step) return x * power_of_two(exponent);
  x *= power_of_two(exponent % step);
  for (; exponent >= step; exponent -= step) x *= power_of_two(step);
  for (; exponent <= -step; exponent += step) x *= power_of_two(-step);
  return x;
}

// Value of a bit pattern; exact, since double holds all values of every format.
constexpr double decode(const Format& format, std::uint64_t stored) {
  using namespace format_detail;
  if (!format.floating) {
    const int unused = 64 - 8 * format.storage_bytes;
    return static_cast<double>(static_cast<std::int64_t>(stored << unused) >> unused);
  }
  if (format.id == FormatId::fp64) return std::bit_cast<double>(stored);
  const int fraction_bits = format.fraction_bits();
  const std::uint64_t pattern = stored >> format.storage_shift;
  const bool negative = ((pattern >> (format.exponent_bits + fraction_bits)) & 1) != 0;
  const int field = static_cast<int>((pattern >> fraction_bits) & all_ones(format.exponent_bits));
  const std::uint64_t fraction = pattern & all_ones(fraction_bits);
  const bool has_top_exponent = field == static_cast<int>(all_ones(format.exponent_bits));
  double magnitude = 0;
  if (has_top_exponent &&
      (format.finite_top_exponent ? fraction == all_ones(fraction_bits) : fraction != 0)) {
    return std::bit_cast<double>(0x7ff8000000000000ULL);
  }
  if (has_top_exponent && !format.finite_top_exponent) {
    magnitude = std::bit_cast<double>(0x7ff0000000000000ULL);
  } else if (field == 0) {
    magnitude = static_cast<double>(fraction) * power_of_two(format.min_quantum());
  } else {
    const std::uint64_t significand = fraction | (1ULL << fraction_bits);
    magnitude = static_cast<double>(significand) * power_of_two(field - format.bias() - fraction_bits);
  }
  return negative ? -magnitude : magnitude;
}

}  // namespace kintsugi::core
