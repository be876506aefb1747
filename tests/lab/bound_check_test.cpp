// The windows and bounds that the laboratory derives from a plan's description are those of src/plan.
#include "lab/bound_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "plan/bound.hpp"
#include "splits/ranges.hpp"

namespace kintsugi::lab {
namespace {

const char* name_of(core::Rounding rounding) {
  switch (rounding) {
    case core::Rounding::nearest_even: return "nearest-even";
    case core::Rounding::towards_zero: return "towards-zero";
    case core::Rounding::bit_cut: return "bit-cut";
  }
  return "";
}

SplitWindow window_of(const core::SplitRule& rule) {
  return split_window({rule.format->name, rule.slices, name_of(rule.first_rounding),
                       name_of(rule.residual_rounding), rule.residual_exponent, rule.scale_vectors,
                       rule.top_exponent});
}

// A row with the two exponents.
VectorNorms norms_of(const SplitWindow& window, int low, int high) {
  const float row[] = {std::ldexp(-1.5F, high), 0, std::ldexp(1.0F, low)};
  return vector_norms({row, 1, 3, 3, 1}, window);
}

TEST(BoundCheck, WindowsAreThoseOfThePlan) {
  for (const core::Scheme* scheme : core::all_schemes()) {
    const core::SplitRule& rule = scheme->program.split_a;
    if (!rule.format->floating) continue;
    const SplitWindow window = window_of(rule);
    ASSERT_TRUE(window.known) << scheme->name;
    EXPECT_EQ(window.scaled, rule.scale_vectors);
    if (window.scaled) {
      EXPECT_EQ(window.largest_span, core::window_span(rule)) << scheme->name;
    }
    for (const int high : {-20, -3, 0, 14, 15, 16, 120}) {
      for (int span = 0; span <= 60 && high - span > -126; ++span) {
        core::RangeSummary ranges;
        ranges.largest_span = span;
        ranges.largest = high;
        ranges.smallest = high - span;
        EXPECT_EQ(norms_of(window, high - span, high).in_window, core::in_window(rule, ranges))
            << scheme->name << ": " << high << ", " << span;
      }
    }
  }
}

TEST(BoundCheck, IntegerFormatsHaveNoWindow) {
  const SplitWindow window = split_window({"int8", 1, "nearest-even", "nearest-even", 0, true, 6});
  EXPECT_FALSE(window.known);
  EXPECT_FALSE(norms_of(window, 0, 0).in_window);
}

TEST(BoundCheck, NormsAndAllowedErrors) {
  SplitWindow window{.known = true, .scaled = true, .top_exponent = 14, .largest_span = 16};
  const float rows[] = {1, -2, 0.5F, 0, 0, 0};
  const VectorNorms norms = vector_norms({rows, 2, 3, 3, 1}, window);
  EXPECT_TRUE(norms.in_window);
  EXPECT_EQ(norms.ones, (std::vector<double>{3.5, 0}));
  EXPECT_EQ(norms.unscales, (std::vector<double>{0x1p-13, 1}));
  EntryError entry;
  entry.absolute = 10;
  entry.exact = 4;
  const BoundCoefficients bound{0x1p-10, 0x1p-3, 0x1p-4, 0x1p-5};
  const double before = 10 * 0x1p-10 + 0x1p-3 * 0x1p-13 * 3.5 + 0x1p-4 * 0x1p-13 * 3.5 + 0x1p-5 * 0x1p-26;
  EXPECT_DOUBLE_EQ(allowed_error(bound, entry, norms, norms), before + 0x1p-24 * (4 + before));
  // One vector outside is enough, wherever it stands.
  const float wide[] = {1, std::ldexp(1.0F, -17), 1, 1};
  EXPECT_FALSE(vector_norms({wide, 2, 2, 2, 1}, window).in_window);
  EXPECT_FALSE(vector_norms({wide, 2, 2, 1, 2}, {}).in_window);
  const float special[] = {1, INFINITY};
  EXPECT_FALSE(vector_norms({special, 1, 2, 2, 1}, window).in_window);
}

}  // namespace
}  // namespace kintsugi::lab
