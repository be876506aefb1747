// Compares the errors of products of MixPert's segments, as lab/ computes them, with the paper's and with
// bounds.
#include <gtest/gtest.h>

#include "lab/numerics/mixpert.hpp"

namespace kintsugi::lab {
namespace {

TEST(SegmentProducts, EnumerationGivesThePapersNumbers) {
  const EnumeratedErrors errors = enumerate_segment_products();
  EXPECT_NEAR(errors.expectation, 2.82e-7, 0.02e-7);
  EXPECT_NEAR(errors.worst, 7.15e-7, 0.01e-7);
  EXPECT_EQ(errors.worst_nearest, 0x1p-20);
}

TEST(SegmentProducts, SimulatedErrorsStayBelowTheWorst) {
  const SimulatedErrors nearest = simulate_segment_products(50000, 1, SegmentRounding::nearest);
  // Errors are both roundings and x_2 y_2, which is left out and below 2^-26.
  EXPECT_LE(nearest.largest, 0x1p-20 + 0x1p-26);
  EXPECT_GT(nearest.largest, 0.8 * 0x1p-20);
  const SimulatedErrors cut = simulate_segment_products(50000, 1, SegmentRounding::towards_zero);
  EXPECT_GT(cut.mean, 2 * nearest.mean);
  EXPECT_LE(cut.largest, 0x1p-19 + 0x1p-26);
}

TEST(SegmentProducts, SplitsLoseLessThanThePaperSays) {
  EXPECT_LT(largest_segment_error(), 0x1p-21);
  EXPECT_GT(largest_segment_error(), 0.99 * 0x1p-21);
}

TEST(SegmentProducts, TheNinthProductChangesTheErrorByLessThanTwoPercent) {
  const NinthProduct errors = simulate_ninth_product(50000, 1);
  EXPECT_NEAR(errors.eight / errors.nine, 1, 0.02);
}

TEST(TileRanges, Equation9FailsWhereErrorsAreLarge) {
  const RangeErrors narrow = measure_tile_ranges(0, 10, 1);
  EXPECT_EQ(narrow.failing, 0);
  EXPECT_EQ(narrow.beyond_32, 0);
  EXPECT_DOUBLE_EQ(narrow.delta, -5);
  EXPECT_LT(narrow.segments, 4e-7);
  // A range of 64:1 is beyond the rule of 32:1, and errors are still those of narrow tiles.
  const RangeErrors middle = measure_tile_ranges(6, 10, 1);
  EXPECT_EQ(middle.failing, 0);
  EXPECT_EQ(middle.beyond_32, 1);
  EXPECT_LT(middle.segments, 3 * narrow.segments);
  const RangeErrors wide = measure_tile_ranges(20, 10, 1);
  EXPECT_EQ(wide.failing, 1);
  EXPECT_GT(wide.componentwise, 100 * narrow.componentwise);
  EXPECT_LT(wide.native, 2e-7);
}

}  // namespace
}  // namespace kintsugi::lab
