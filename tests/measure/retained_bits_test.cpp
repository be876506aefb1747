#include "tools/measure/retained_bits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "arith/range.hpp"
#include "base/status.hpp"
#include "schemes/program.hpp"
#include "tests/measure/special_numbers.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/measure/generators/random.hpp"
#include "tools/measure/reference/exact.hpp"

namespace kintsugi::measure {
namespace {

constexpr SplitDescription fp16_pair{"fp16", 2, "nearest-even", "nearest-even", 0, false, 0};
constexpr SplitDescription scaled_pair{"fp16", 2, "nearest-even", "nearest-even", 0, true, 14};
constexpr SplitDescription wide_pair{"fp16", 2, "nearest-even", "nearest-even", 12, true, 14};
constexpr SplitDescription bf16_triple{"bf16", 3, "nearest-even", "nearest-even", 8, true, 40};
constexpr SplitDescription int8_digits{"int8", 3, "nearest-even", "nearest-even", 7, true, 6};

int bits(const SplitDescription& split, double x, int scale = 0) {
  return RetainedBits(split).of(static_cast<float>(x), scale);
}

TEST(RetainedBits, OfOneSliceEqualValuesByHand) {
  const SplitDescription fp16{"fp16", 1, "nearest-even", "nearest-even", 0, false, 0};
  EXPECT_EQ(bits(fp16, 1), 24);              // exact
  EXPECT_EQ(bits(fp16, 1 + 0x1p-11), 11);    // the tie is lost: 2^-11 of 1 + 2^-11
  EXPECT_EQ(bits(fp16, 1.5 + 0x1p-11), 11);  // 2^-11 <= 2^-11 * 1.5, not 2^-12 * 1.5
  EXPECT_EQ(bits(fp16, 1 + 0x1p-13), 13);
  EXPECT_EQ(bits(fp16, 1 - 0x1p-24), 23);  // rounds up to 1: 2^-24 > 2^-24 (1 - 2^-24)
  EXPECT_EQ(bits(fp16, 0x1p-25), 0);       // the tie goes to zero
  EXPECT_EQ(bits(fp16, -0x1.8p-25), 1);    // rounds to 2^-24: a third too much, at most a half
  EXPECT_EQ(bits(fp16, 65520), 0);         // overflows
  const SplitDescription truncated{"fp16", 1, "towards-zero", "towards-zero", 0, false, 0};
  EXPECT_EQ(bits(truncated, 65520), 11);  // 65504: 16 of 65520
  const SplitDescription cut{"fp16", 1, "bit-cut", "bit-cut", 0, false, 0};
  EXPECT_EQ(bits(cut, 0x1p-14), 24);
  EXPECT_EQ(bits(cut, 0x1p-15), 0);  // no gradual underflow
}

TEST(RetainedBits, PlacesEqualValuesByHand) {
  const RetainedBits truncated({"fp16", 1, "towards-zero", "towards-zero", 0, false, 0});
  EXPECT_EQ(truncated.places_of(1), 24);                // exact
  EXPECT_EQ(truncated.places_of(1 + 0x1.ffcp-11), 11);  // nearly a unit of the eleventh place is lost
  EXPECT_EQ(truncated.of(1 + 0x1.ffcp-11), 10);
  EXPECT_EQ(truncated.places_of(0x1p-25), 0);  // all of it is lost: 1 is not below 2^(1-1)
  const RetainedBits nearest({"fp16", 1, "nearest-even", "nearest-even", 0, false, 0});
  EXPECT_EQ(nearest.places_of(-0x1.8p-25), 2);  // a third too much, below a half
  EXPECT_EQ(nearest.places_of(65520), 0);       // overflows
}

TEST(RetainedBits, AreLostWhereTheResidualUnderflows) {
  const double x = 1 + 0x1p-11 + 0x1p-23;  // rounds up and leaves twelve ones, one more than a slice has
  EXPECT_EQ(bits(fp16_pair, x), 23);
  EXPECT_EQ(bits(fp16_pair, 1 + 0x1p-13), 24);
  EXPECT_EQ(bits(fp16_pair, 0x1p-13 + 0x1p-26), 13);  // the residual 2^-26 is lost
  EXPECT_EQ(bits(scaled_pair, 0x1p-13 + 0x1p-26, 13), 24);
  EXPECT_EQ(bits(wide_pair, 0x1p-13 + 0x1p-26), 24);
}

TEST(RetainedBits, ExactDoublesHave53) {
  const RetainedBits pair(fp16_pair);
  EXPECT_EQ(pair.of(1.0), 53);
  EXPECT_EQ(pair.of(1 + 0x1p-52), 52);
  EXPECT_EQ(RetainedBits(bf16_triple).of(std::numeric_limits<double>::denorm_min(), -1), 0);
}

TEST(RetainedBits, UnknownNamesAreErrors) {
  EXPECT_THROW(RetainedBits({"fp15", 1, "nearest-even", "nearest-even", 0, false, 0}), core::Error);
  EXPECT_THROW(RetainedBits({"fp16", 1, "nearest", "nearest-even", 0, false, 0}), core::Error);
}

// Retained bits by their definition, with exact sums of the slices that the library's split gives.
int bits_of_slices(const core::SplitRule& rule, float x, int scale) {
  ExactSum error;
  bool finite = true;
  error.add(std::ldexp(static_cast<double>(x), scale));
  core::split_element(rule, static_cast<double>(x), scale, [&](int s, std::uint64_t pattern) {
    const double slice = core::decode(*rule.format, pattern);
    finite = finite && std::isfinite(slice);
    error.add(-std::ldexp(slice, -s * rule.residual_exponent));
  });
  if (!finite) return 0;
  const double residual = std::fabs(error.to_double());
  const double magnitude = std::fabs(std::ldexp(static_cast<double>(x), scale));
  int p = 0;
  while (p < 24 && std::ldexp(residual, p + 1) <= magnitude) ++p;
  return p;
}

TEST(RetainedBits, EqualThoseOfTheLibrarysSplits) {
  Random random(1);
  for (const core::Scheme* scheme : core::all_schemes()) {
    const core::SplitRule& rule = scheme->program.split_a;
    if (rule.kind == core::SplitKind::residues || rule.slices == 0) continue;  // no sums of slices
    if (rule.kind == core::SplitKind::successive) continue;  // the grids depend on the whole vector
    if (rule.kind == core::SplitKind::tiles) continue;       // exponents depend on the whole tile
    if (rule.kind == core::SplitKind::direct_residuals) continue;
    const RetainedBits retained({rule.format->name, rule.slices, name_of(rule.first_rounding),
                                 name_of(rule.residual_rounding), rule.residual_exponent, rule.scale_vectors,
                                 rule.top_exponent,
                                 rule.kind == core::SplitKind::grid_digits ? "fixed" : "hi_lo"});
    // For integer formats elements are a binade below the top, so that none rounds up to a digit beyond int8.
    const int top = rule.top_exponent - (rule.format->floating ? 0 : 1);
    const int last = rule.scale_vectors ? top : rule.format->max_exponent;
    for (int draw = 0; draw < 4000; ++draw) {
      const int exponent = last - static_cast<int>(random.integer(0, 60));
      const int scale = rule.scale_vectors ? static_cast<int>(random.integer(-20, 20)) : 0;
      const auto x = static_cast<float>(std::ldexp(1 + random.unit(), exponent - scale));
      EXPECT_EQ(retained.of(x, scale), bits_of_slices(rule, x, scale)) << scheme->name << ", " << x;
    }
  }
}

// Inside the window no element retains fewer bits than the split promises, and some retain no more.
TEST(RetainedBits, PromisesHoldInTheWindow) {
  struct Case {
    SplitDescription split;
    int promised;
    int window;
  };
  for (const auto& [split, promised, window] :
       {Case{scaled_pair, 23, 16}, Case{wide_pair, 23, 28}, Case{bf16_triple, 24, 100}}) {
    std::vector<float> values(64 * 512);
    const core::MatrixView<float> rows{values.data(), 64, 512, 512, 1};
    fill({DistributionKind::span, static_cast<double>(window)}, Side::a, 3, rows);
    const core::MatrixView<const float> view{values.data(), 64, 512, 512, 1};
    const RetainedCounts inside = count_retained_bits(split, view);
    EXPECT_EQ(inside.promised_bits, promised);
    EXPECT_EQ(inside.fewest, promised) << split.format;
    EXPECT_EQ(inside.promised, inside.elements);
    EXPECT_EQ(inside.elements, 64 * 512);
    if (split.format == "bf16")
      continue;  // its window ends where products underflow, not where bits are lost
    fill({DistributionKind::span, window + 4.0}, Side::a, 3, rows);
    const RetainedCounts outside = count_retained_bits(split, view);
    EXPECT_LT(outside.fewest, promised);
    EXPECT_LT(outside.promised, outside.elements);
  }
}

TEST(RetainedBits, EveryRowOrColumnHasItsOwnScale) {
  // Only column 1 has a wide dynamic range, 30 binades: 2^-30 would be held exactly as 2^-16, 1.1 2^-30 is
  // not.
  const auto low = static_cast<float>(std::ldexp(1.1F, -30));
  const float values[] = {1, 1, 0, low, INFINITY, NAN};  // 3 x 2
  const core::MatrixView<const float> matrix{values, 3, 2, 2, 1};
  const RetainedCounts columns = count_retained_bits(scaled_pair, matrix.transposed());
  EXPECT_EQ(columns.elements, 3);  // neither zero nor special
  EXPECT_EQ(columns.promised, 2);
  EXPECT_LT(columns.fewest, 23);
  EXPECT_GE(count_retained_bits(scaled_pair, matrix).fewest, 23);  // rows have a dynamic range of 0
}

TEST(RetainedBits, IntegerScalesLeaveRoomForRounding) {
  const RetainedBits digits(int8_digits);
  const auto scale = [&](float x) {
    return digits.scale_of(core::MatrixView<const float>{&x, 1, 1, 1, 1}, 0);
  };
  EXPECT_EQ(scale(1.0F), 6);
  EXPECT_EQ(scale(127.0F), -1);  // seven ones
  EXPECT_EQ(scale(std::nextafter(127.0F, 0.0F)), 0);
  EXPECT_EQ(scale(-126.5F), 0);
  EXPECT_EQ(scale(0.0F), 0);
  // The grid is 2^-14 for a largest magnitude in [64, 127), so at most 2^-15 is lost.
  EXPECT_EQ(digits.promised(24), 20);
  Random random(5);
  for (int draw = 0; draw < 1000; ++draw) {
    const auto x = static_cast<float>(1 + random.unit());
    EXPECT_GE(digits.of(x, scale(x)), 20) << x;
  }
}

// Digits are -128...127. Rounding digit by digit would need 128 where half a unit is left; rounding to the
// grid once carries it into the first digit.
TEST(RetainedBits, AGridIsRoundedOnce) {
  SplitDescription grid{"int8", 2, "nearest-even", "nearest-even", 8, true, 6};
  const double x = 64 + 0.5;     // the first digit is 64 to nearest, the rest 0.5 2^8 = 128
  EXPECT_EQ(bits(grid, x), 14);  // 127 of 128: 2^-8 is lost, 2^-14.01 of x
  grid.kind = "fixed";
  EXPECT_EQ(bits(grid, x), 24);
  EXPECT_EQ(bits(grid, x + 0x1p-9), 15);
  grid.kind = "loose";
  EXPECT_THROW(bits(grid, x), core::Error);
}

}  // namespace
}  // namespace kintsugi::measure
