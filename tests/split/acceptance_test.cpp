// Tests which operands a candidate's acceptance test accepts.
#include "split/acceptance.hpp"

#include <gtest/gtest.h>

namespace kintsugi::core {
namespace {

constexpr std::int64_t sum_length = 100;

constexpr RangeSummary with_range(std::int32_t dynamic_range) {
  return {.dynamic_range = dynamic_range,
          .largest = 3,
          .smallest = 3 - dynamic_range,
          .min_elements = 100,
          .depth = VectorRange::unknown_depth};
}

TEST(Acceptance, IsByTheWiderOfBothDynamicRanges) {
  constexpr Acceptance acceptance{16};
  EXPECT_TRUE(accepts(acceptance, with_range(16), with_range(0), sum_length));
  EXPECT_TRUE(accepts(acceptance, with_range(0), with_range(16), sum_length));
  EXPECT_FALSE(accepts(acceptance, with_range(17), with_range(0), sum_length));
  EXPECT_FALSE(accepts(acceptance, with_range(0), with_range(17), sum_length));
  EXPECT_TRUE(accepts(accepts_all, with_range(2000), with_range(2000), sum_length));
}

TEST(Acceptance, IsByMeanDepthWhereRangesAreTooWide) {
  RangeSummary wide = with_range(90);
  wide.depth = 400;  // of 100 elements: 4 binades each
  EXPECT_FALSE(accepts(Acceptance{16}, wide, wide, sum_length));
  EXPECT_FALSE(accepts(Acceptance{16, 7}, wide, wide, sum_length));
  EXPECT_TRUE(accepts(Acceptance{16, 8}, wide, wide, sum_length));
  EXPECT_FALSE(accepts(Acceptance{16, 8}, wide, with_range(90), sum_length))
      << "the mean depth of B is not known";
  EXPECT_TRUE(accepts(Acceptance{16, 8}, with_range(16), with_range(16), sum_length)) << "by range alone";
}

TEST(Acceptance, IsLimitedByTheLargestExponent) {
  EXPECT_TRUE(accepts(Acceptance{16, 0, 3}, with_range(2), with_range(2), sum_length));
  EXPECT_FALSE(accepts(Acceptance{16, 0, 2}, with_range(2), with_range(2), sum_length));
  RangeSummary level = with_range(2);
  level.depth = 0;
  EXPECT_FALSE(accepts(Acceptance{16, 8, 2}, level, level, sum_length)) << "whatever the mean depth";
}

TEST(Acceptance, NeedsAProofByNormsWhereNormsDecide) {
  constexpr Acceptance acceptance{.dynamic_range = Acceptance::any, .norm_bits = 119};
  EXPECT_TRUE(acceptance.by_norms());
  EXPECT_FALSE(accepts(acceptance, with_range(2), with_range(2), sum_length));
  EXPECT_TRUE(accepts(acceptance, with_range(2), with_range(2), sum_length, true));
  EXPECT_FALSE(accepts(Acceptance{16, 0, 2, 119}, with_range(2), with_range(2), sum_length, true))
      << "by exponent";
  EXPECT_TRUE(accepts(Acceptance{16}, with_range(2), with_range(2), sum_length, false))
      << "norms do not matter";
}

}  // namespace
}  // namespace kintsugi::core
