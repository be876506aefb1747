// Tests that the windows and bounds that tools/measure derives from a plan's description are those of
// src/schemes/bound.cpp.
#include "tools/measure/bound_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schemes/bound.hpp"
#include "split/ranges.hpp"
#include "tests/measure/special_numbers.hpp"

namespace kintsugi::measure {
namespace {

SplitWindow window_of(const core::SplitRule& rule) {
  return split_window({rule.format->name, rule.slices, name_of(rule.first_rounding),
                       name_of(rule.residual_rounding), rule.residual_exponent, rule.scale_vectors,
                       rule.top_exponent,
                       rule.kind == core::SplitKind::residues           ? "residues"
                       : rule.kind == core::SplitKind::direct_residuals ? "direct"
                                                                        : "hi_lo"});
}

// Norms of the rows of a row-major matrix.
template <class T>
VectorNorms norms_of_rows(const std::vector<T>& values, std::int64_t rows, const SplitWindow& window) {
  const auto columns = static_cast<std::int64_t>(values.size()) / rows;
  return vector_norms(core::MatrixView<const T>{values.data(), rows, columns, columns, 1}, window);
}

// Norms of a row whose smallest and largest exponents are these.
VectorNorms norms_of(const SplitWindow& window, int low, int high) {
  return norms_of_rows<float>({std::ldexp(-1.5F, high), 0, std::ldexp(1.0F, low)}, 1, window);
}

TEST(BoundCheck, WindowsEqualThoseOfSplitRules) {
  for (const core::Scheme* scheme : core::all_schemes()) {
    const core::SplitRule& rule = scheme->program.split_a;
    if (!rule.format->floating || rule.slices == 0 || rule.kind == core::SplitKind::successive) continue;
    const SplitWindow window = window_of(rule);
    ASSERT_TRUE(window.known) << scheme->name;
    EXPECT_EQ(window.scaled, rule.scale_vectors);
    if (window.scaled) {
      EXPECT_EQ(window.dynamic_range, core::window_range(rule)) << scheme->name;
    }
    for (const int high : {-20, -3, 0, 14, 15, 16, 120}) {
      for (int dynamic_range = 0; dynamic_range <= 60 && high - dynamic_range > -126; ++dynamic_range) {
        core::RangeSummary ranges;
        ranges.dynamic_range = dynamic_range;
        ranges.largest = high;
        ranges.smallest = high - dynamic_range;
        EXPECT_EQ(norms_of(window, high - dynamic_range, high).in_window, core::in_window(rule, ranges))
            << scheme->name << ": " << high << ", " << dynamic_range;
      }
    }
  }
}

TEST(BoundCheck, ScalesEqualThoseOfTheSplit) {
  for (const core::Scheme* scheme : core::all_schemes()) {
    const core::SplitRule& rule = scheme->program.split_a;
    for (const float largest : {1.0F, 1.9F, 1.98437488F, 1.984375F, 1.999F, 0x1p-149F, 0x1.fcp-130F, 3e38F}) {
      const std::vector<float> row{largest / 8, -largest, 0};
      const core::MatrixView<const float> view{row.data(), 1, 3, 3, 1};
      std::vector<core::VectorRange> ranges(1);
      core::find_ranges(view, rule, std::span(ranges), 1);
      const VectorNorms norms = vector_norms(view, window_of(rule));
      EXPECT_EQ(norms.unscales[0], std::ldexp(1.0L, -ranges[0].scale)) << scheme->name << ": " << largest;
    }
  }
}

// A residual times a large power of two may be larger than the element itself.
TEST(BoundCheck, ResidualSlicesMayOverflowFirst) {
  const auto largest = [](std::string_view format, int slices, int residual_exponent) {
    return split_window({format, slices, "nearest-even", "nearest-even", residual_exponent, false, 0})
        .largest;
  };
  EXPECT_EQ(largest("fp16", 2, 0), 14);
  EXPECT_EQ(largest("fp16", 2, 12), 14);  // half an ulp, 2^(e - 11), becomes 2^(e + 1)
  EXPECT_EQ(largest("fp16", 2, 13), 13);
  EXPECT_EQ(largest("fp16", 3, 13), 12);  // 2^(e - 23 + 26)
  EXPECT_EQ(largest("fp8_e5m2", 2, 8), 10);
  const SplitWindow window = split_window({"fp16", 2, "nearest-even", "nearest-even", 13, false, 0});
  EXPECT_TRUE(norms_of(window, 13, 13).in_window);
  EXPECT_FALSE(norms_of(window, 13, 14).in_window);
}

TEST(BoundCheck, UnknownFormatsHaveNoWindow) {
  const SplitWindow window = split_window({"int9", 1, "nearest-even", "nearest-even", 0, true, 6});
  EXPECT_FALSE(window.known);
  EXPECT_FALSE(norms_of(window, 0, 0).in_window);
}

TEST(BoundCheck, IntegerFormatsTakeEveryFiniteVector) {
  const SplitWindow window = split_window({"int8", 3, "nearest-even", "nearest-even", 8, true, 6});
  EXPECT_TRUE(window.known && window.integer && window.scaled);
  EXPECT_TRUE(norms_of(window, -120, 120).in_window);
  EXPECT_FALSE(norms_of_rows<float>({1, INFINITY}, 1, window).in_window);
  // Scales are 2^(e - 6), e the largest exponent; from 127/128 of the next power of two on, e is one more.
  const std::vector<double> rows{1, -0.5, -1.984375, 1, 0x1.fbfffffffffffp0, 1, 0x1p-1074, 0, 0, 0};
  const VectorNorms norms = norms_of_rows(rows, 5, window);
  EXPECT_TRUE(norms.in_window);
  EXPECT_EQ(norms.one_norms, (std::vector<double>{1.5, 2.984375, 1 + 0x1.fbfffffffffffp0, 0x1p-1074, 0}));
  EXPECT_EQ(norms.unscales, (std::vector<long double>{0x1p-6, 0x1p-5, 0x1p-6, std::ldexp(1.0L, -1080), 1}));
}

TEST(BoundCheck, AllowedErrorsFollowNormsAndBound) {
  SplitWindow window{.known = true, .scaled = true, .top_exponent = 14, .dynamic_range = 16};
  const VectorNorms norms = norms_of_rows<float>({1, -2, 0.5F, 0, 0, 0}, 2, window);
  EXPECT_TRUE(norms.in_window);
  EXPECT_EQ(norms.one_norms, (std::vector<double>{3.5, 0}));
  EXPECT_EQ(norms.unscales, (std::vector<long double>{0x1p-13, 1}));
  ElementError element;
  element.absolute = 10;
  element.exact = 4;
  const BoundCoefficients bound{0x1p-10, 0x1p-3, 0x1p-4, 0x1p-5};
  const double before_rounding =
      10 * 0x1p-10 + 0x1p-3 * 0x1p-13 * 3.5 + 0x1p-4 * 0x1p-13 * 3.5 + 0x1p-5 * 0x1p-26;
  EXPECT_DOUBLE_EQ(allowed_error<float>(bound, element, norms, norms),
                   before_rounding + 0x1p-24 * (4 + before_rounding));
  EXPECT_DOUBLE_EQ(allowed_error<double>(bound, element, norms, norms),
                   before_rounding + 0x1p-53 * (4 + before_rounding));
  // An element with bound 0 may lose the type's last subnormal place in the last rounding.
  EXPECT_EQ(allowed_error<float>({}, {}, norms, norms), 0x1p-149);
  EXPECT_EQ(allowed_error<double>({}, {}, norms, norms), 0x1p-1074);
}

TEST(BoundCheck, OneVectorOutsideTheWindowIsEnough) {
  SplitWindow window{.known = true, .scaled = true, .top_exponent = 14, .dynamic_range = 16};
  const std::vector<double> wide{1, std::ldexp(1.0, -17), 1, 1};
  EXPECT_FALSE(norms_of_rows(wide, 2, window).in_window);
  EXPECT_FALSE(vector_norms(core::MatrixView<const double>{wide.data(), 2, 2, 1, 2}, {}).in_window);
  EXPECT_FALSE(norms_of_rows<float>({1, INFINITY}, 1, window).in_window);
}

}  // namespace
}  // namespace kintsugi::measure
