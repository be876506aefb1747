// Every bit pattern of the small formats: decode() then encode() gives it back.
#include <gtest/gtest.h>

#include "mpfr_reference.hpp"

namespace kintsugi::core {
namespace {

// Pattern of the quiet NaN that encode() gives, in the format's storage position.
std::uint64_t quiet_nan(const Format& format) {
  switch (format.id) {
    case FormatId::fp16: return 0x7e00;
    case FormatId::bf16: return 0x7fc0;
    case FormatId::tf32: return 0x7fc00000;
    case FormatId::fp8_e4m3: return 0x7f;
    case FormatId::fp8_e5m2: return 0x7e;
    default: return 0;
  }
}

struct Count {
  int nan = 0;
  int infinite = 0;
  int subnormal = 0;
};

Count round_trip(const Format& format, int bits) {
  Count count;
  for (std::uint64_t pattern = 0; pattern < (1ULL << bits); ++pattern) {
    const std::uint64_t stored = pattern << format.storage_shift;
    const double value = decode(format, stored);
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::towards_zero}) {
      const std::uint64_t expected = std::isnan(value) ? quiet_nan(format) : stored;
      if (encode(format, value, rounding) != expected) {
        ADD_FAILURE() << format.name << " pattern " << pattern << ", value " << value;
        return count;
      }
    }
    count.nan += std::isnan(value) ? 1 : 0;
    count.infinite += std::isinf(value) ? 1 : 0;
    const double magnitude = std::fabs(value);
    count.subnormal += magnitude > 0 && magnitude < std::ldexp(1.0, format.min_exponent) ? 1 : 0;
  }
  return count;
}

void expect_counts(const Format& format, int bits, int nan, int infinite) {
  const Count count = round_trip(format, bits);
  EXPECT_EQ(count.nan, nan) << format.name;
  EXPECT_EQ(count.infinite, infinite) << format.name;
  EXPECT_EQ(count.subnormal, 2 * ((1 << (format.significand_bits - 1)) - 1)) << format.name;
}

TEST(RoundTrip, KeepsEveryPattern) {
  expect_counts(fp16, 16, 2 * 1023, 2);
  expect_counts(bf16, 16, 2 * 127, 2);
  expect_counts(tf32, 19, 2 * 1023, 2);
  expect_counts(fp8_e5m2, 8, 2 * 3, 2);
  expect_counts(fp8_e4m3, 8, 2, 0);
}

TEST(RoundTrip, KeepsEveryInt8) {
  for (int value = -128; value <= 127; ++value) {
    const std::uint64_t stored = encode(int8, value);
    EXPECT_EQ(stored, static_cast<std::uint8_t>(value));
    EXPECT_EQ(decode(int8, stored), value);
  }
}

TEST(RoundTrip, Fp32AndFp64EqualTheProcessors) {
  // The stride visits every exponent and all kinds of last bits.
  for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += 65'521) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    ASSERT_TRUE(testing::same_value(decode(fp32, bits), static_cast<double>(value))) << bits;
    if (!std::isnan(value)) {
      ASSERT_EQ(encode(fp32, static_cast<double>(value)), bits);
    }
  }
  for (std::uint64_t bits = 0; bits < ~0ULL - 0x0000'ffff'ffff'ffc5ULL; bits += 0x0000'ffff'ffff'ffc5ULL) {
    const double value = std::bit_cast<double>(bits);
    ASSERT_TRUE(testing::same_value(decode(fp64, bits), value)) << bits;
    if (!std::isnan(value)) {
      ASSERT_EQ(encode(fp64, value), bits);
    }
  }
}

// tf32 is stored in an fp32's bits: decode() ignores the bits below its last one, as the hardware does.
TEST(RoundTrip, Tf32IgnoresTheLastThirteenBits) {
  EXPECT_EQ(decode(tf32, 0x3f801fff), 1);
  EXPECT_EQ(decode(tf32, 0x3f802000), 1 + 0x1p-10);
}

TEST(Formats, DescriptionsAgreeWithTheirSpecifications) {
  for (const Format* format : formats) {
    EXPECT_EQ(find_format(format->name), format);
    if (!format->floating) continue;
    const int top_field = format->finite_top_exponent ? 0 : -1;
    EXPECT_EQ(format->max_exponent, (1 << format->exponent_bits) - 1 + top_field - format->bias())
        << format->name;
    EXPECT_EQ(format->storage_shift + 1 + format->exponent_bits + format->fraction_bits(),
              8 * format->storage_bytes);
    if (format->id == FormatId::fp64) continue;
    const double largest = testing::largest_finite(*format);
    EXPECT_EQ(decode(*format, encode(*format, largest)), largest) << format->name;
    EXPECT_EQ(decode(*format, 1ULL << format->storage_shift), std::ldexp(1.0, format->min_quantum()))
        << format->name;
  }
  EXPECT_EQ(find_format("fp17"), nullptr);
}

}  // namespace
}  // namespace kintsugi::core
