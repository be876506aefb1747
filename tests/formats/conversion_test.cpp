// Compares encode() with MPFR for every floating-point format.
#include <gtest/gtest.h>

#include <random>

#include "mpfr_reference.hpp"

namespace kintsugi::core {
namespace {

using namespace testing;  // NOLINT: this folder's helpers

const Format* const small_formats[] = {&fp16, &bf16, &tf32, &fp8_e4m3, &fp8_e5m2};
const Format* const floating_formats[] = {&fp16, &bf16, &tf32, &fp8_e4m3, &fp8_e5m2, &fp32, &fp64};
constexpr Rounding ieee_roundings[] = {Rounding::nearest_even, Rounding::towards_zero};

auto converter(const Format& format, Rounding rounding, Subnormals subnormals = Subnormals::keep) {
  return [&format, rounding, subnormals](double x) {
    return decode(format, encode(format, x, rounding, subnormals));
  };
}

::testing::AssertionResult no_mismatch(const std::optional<Mismatch>& mismatch) {
  if (!mismatch) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << std::hexfloat << mismatch->input << " gave " << mismatch->got
                                       << ", expected " << mismatch->expected;
}

// Random bit patterns of doubles, so that all exponents are equally likely, with subnormals, infinities and
// NaN.
std::vector<double> any_doubles(int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> result{0,
                             infinity,
                             not_a_number,
                             0x1p-1074,
                             0x1.8p-1074,
                             0x1p-1022,
                             0x1.fffffffffffffp-1023,
                             std::numeric_limits<double>::max()};
  for (int i = 0; i < count; ++i) {
    const std::uint64_t bits = random();
    result.push_back(std::bit_cast<double>(bits));
    result.push_back(std::bit_cast<double>(bits & 0x000fffffffffffffULL));  // subnormal doubles
  }
  return result;
}

// Random doubles with exponents in and around the format's range.
std::vector<double> doubles_near(const Format& format, int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> result;
  const int lowest = format.min_exponent - format.significand_bits - 3;
  const auto range = static_cast<std::uint64_t>(format.max_exponent + 3 - lowest);
  for (int i = 0; i < count; ++i) {
    const double significand = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
    const int exponent = lowest + static_cast<int>(random() % range);
    result.push_back(std::ldexp(significand, exponent));
    // Few significant bits: exact values and ties by chance.
    const int kept = static_cast<int>(random() % 14);
    result.push_back(std::ldexp(std::ldexp(std::trunc(std::ldexp(significand, kept)), -kept), exponent));
  }
  return result;
}

TEST(Conversion, EqualsMpfrAtEveryValueAndMidpoint) {
  for (const Format* format : small_formats) {
    const std::vector<double> points = neighbourhoods(*format);
    for (const Rounding rounding : ieee_roundings) {
      EXPECT_TRUE(
          no_mismatch(find_mismatch(points, converter(*format, rounding), Reference(*format, rounding))))
          << format->name << (rounding == Rounding::nearest_even ? " nearest" : " towards zero");
    }
  }
}

TEST(Conversion, EqualsMpfrForRandomDoubles) {
  for (const Format* format : floating_formats) {
    for (const Rounding rounding : ieee_roundings) {
      const auto convert = converter(*format, rounding);
      EXPECT_TRUE(no_mismatch(find_mismatch(any_doubles(50'000, 1), convert, Reference(*format, rounding))))
          << format->name;
      if (format->id == FormatId::fp64) continue;
      EXPECT_TRUE(no_mismatch(
          find_mismatch(doubles_near(*format, 100'000, 2), convert, Reference(*format, rounding))))
          << format->name;
    }
  }
}

TEST(Conversion, EqualsTheProcessorsForFp32) {
  const auto cast = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  EXPECT_TRUE(no_mismatch(
      find_mismatch(doubles_near(fp32, 200'000, 3), converter(fp32, Rounding::nearest_even), cast)));
  for (const double x : doubles_near(fp32, 1000, 4)) {
    EXPECT_EQ(encode(fp32, x), std::bit_cast<std::uint32_t>(static_cast<float>(x)));
    EXPECT_EQ(encode(fp64, x), std::bit_cast<std::uint64_t>(x));
  }
}

// Rounding::bit_cut as formats/format.hpp defines it after le-gemm, section 4.1.
double bit_cut_reference(const Format& format, double x) {
  if (std::isnan(x)) return x;
  const double magnitude = std::fabs(x);
  const double overflow = format.overflow == Overflow::nan ? not_a_number : infinity;
  double result = 0;
  if (magnitude >= std::ldexp(1.0, format.min_exponent)) {
    if (std::isinf(x)) return std::copysign(overflow, x);
    const double unit = std::ldexp(1.0, std::ilogb(x) - (format.significand_bits - 1));
    result = std::trunc(magnitude / unit) * unit;
    if (result > largest_finite(format)) result = overflow;
  }
  return std::copysign(result, x);
}

TEST(Conversion, BitCutTruncatesAndFlushes) {
  for (const Format* format : small_formats) {
    const auto convert = converter(*format, Rounding::bit_cut);
    const auto reference = [format](double x) { return bit_cut_reference(*format, x); };
    EXPECT_TRUE(no_mismatch(find_mismatch(neighbourhoods(*format), convert, reference))) << format->name;
    EXPECT_TRUE(no_mismatch(find_mismatch(any_doubles(20'000, 5), convert, reference))) << format->name;
    EXPECT_TRUE(no_mismatch(find_mismatch(doubles_near(*format, 50'000, 6), convert, reference)))
        << format->name;
    const double smallest = std::ldexp(1.0, format->min_exponent);
    EXPECT_EQ(convert(smallest), smallest);
    EXPECT_EQ(convert(std::nextafter(smallest, 0)), 0);  // no gradual underflow
    EXPECT_TRUE(std::signbit(convert(-smallest / 2)));
    EXPECT_EQ(convert(std::nextafter(1.0, 0)), 1 - std::ldexp(1.0, -format->significand_bits));
    EXPECT_EQ(std::isnan(convert(2 * largest_finite(*format))), format->overflow == Overflow::nan);
    EXPECT_FALSE(std::isfinite(convert(2 * largest_finite(*format))));
  }
}

// Flushing looks at the rounded result: what rounds up to the smallest normal number stays.
TEST(Conversion, FlushesAfterRounding) {
  for (const Format* format : small_formats) {
    const double smallest_normal = std::ldexp(1.0, format->min_exponent);
    for (const Rounding rounding : ieee_roundings) {
      Reference rounded(*format, rounding);
      const auto reference = [&](double x) {
        const double y = rounded(x);
        return std::fabs(y) < smallest_normal ? std::copysign(0.0, y) : y;
      };
      EXPECT_TRUE(no_mismatch(
          find_mismatch(neighbourhoods(*format), converter(*format, rounding, Subnormals::flush), reference)))
          << format->name;
    }
    const double below = std::nextafter(smallest_normal, 0);
    EXPECT_EQ(decode(*format, encode(*format, below, Rounding::nearest_even, Subnormals::flush)),
              smallest_normal);
    EXPECT_EQ(decode(*format, encode(*format, below, Rounding::towards_zero, Subnormals::flush)), 0);
  }
}

struct OverflowCase {
  const Format* format;
  double first_too_large;  // the tie, which goes to overflow in every format but e4m3
  double value;            // result of a conversion that overflows
};

TEST(Conversion, OverflowBeginsAtTheFormatsTie) {
  const OverflowCase cases[] = {
      {&fp16, 65520, infinity},
      {&bf16, 0x1.ffp127, infinity},
      {&tf32, 0x1.ffep127, infinity},
      {&fp8_e5m2, 61440, infinity},
      {&fp8_e4m3, std::nextafter(464.0, 500.0), not_a_number},  // 464 is a tie to even 448
      {&fp32, 0x1.ffffffp127, infinity}};
  for (const auto& [format, first, value] : cases) {
    SCOPED_TRACE(format->name);
    const auto nearest = converter(*format, Rounding::nearest_even);
    const auto towards_zero = converter(*format, Rounding::towards_zero);
    const double largest = largest_finite(*format);
    for (const double sign : {1.0, -1.0}) {
      EXPECT_TRUE(same_value(nearest(sign * first), sign * value));
      EXPECT_EQ(nearest(sign * std::nextafter(first, 0)), sign * largest);
      EXPECT_TRUE(same_value(nearest(sign * 1e300), sign * value));
      for (const double x : {first, 2 * largest, 1e300}) EXPECT_EQ(towards_zero(sign * x), sign * largest);
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::towards_zero, Rounding::bit_cut}) {
        EXPECT_TRUE(same_value(converter(*format, rounding)(sign * infinity), sign * value));
      }
    }
  }
}

// The comparison must detect conversions with plausible mistakes.
TEST(Conversion, ComparisonRefusesWrongRounding) {
  for (const Format* format : small_formats) {
    const std::vector<double> points = neighbourhoods(*format);
    const auto truncated = converter(*format, Rounding::towards_zero);
    EXPECT_TRUE(find_mismatch(points, truncated, Reference(*format, Rounding::nearest_even))) << format->name;
    // Ties away from zero: right everywhere but at ties.
    const auto ties_away = [format](double x) {
      return decode(*format, encode(*format, std::nextafter(x, std::copysign(infinity, x))));
    };
    EXPECT_TRUE(find_mismatch(points, ties_away, Reference(*format, Rounding::nearest_even))) << format->name;
    const auto flushed = converter(*format, Rounding::nearest_even, Subnormals::flush);
    EXPECT_TRUE(find_mismatch(points, flushed, Reference(*format, Rounding::nearest_even))) << format->name;
    // Conversion through float, which rounds twice.
    const auto by_float = [format](double x) {
      return decode(*format, encode(*format, static_cast<double>(static_cast<float>(x))));
    };
    EXPECT_TRUE(find_mismatch(points, by_float, Reference(*format, Rounding::nearest_even))) << format->name;
    const auto loses_sign = [format](double x) { return decode(*format, encode(*format, x == 0 ? 0.0 : x)); };
    EXPECT_TRUE(find_mismatch(points, loses_sign, Reference(*format, Rounding::nearest_even)))
        << format->name;
  }
}

static_assert(encode(fp16, 1.0) == 0x3c00 && encode(fp16, -65504.0) == 0xfbff);
static_assert(encode(bf16, 1.0) == 0x3f80 && encode(tf32, 1.0) == 0x3f800000);
static_assert(encode(fp8_e4m3, 448.0) == 0x7e && encode(fp8_e4m3, 0x1p-9) == 0x01);
static_assert(encode(fp8_e5m2, 57344.0) == 0x7b && encode(fp8_e5m2, 1.0) == 0x3c);
static_assert(decode(fp16, 0x0001) == 0x1p-24 && decode(fp8_e5m2, 0x01) == 0x1p-16);

}  // namespace
}  // namespace kintsugi::core
