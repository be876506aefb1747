// Tests how many roundings outside the engine a schedule's bound counts.
#include "schedule/bound.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "formats/fp16.hpp"

namespace kintsugi::core {
namespace {

constexpr Term small_first[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 0}};
constexpr Term apart[] = {{1, 0, 0}, {0, 1, 1}, {0, 0, 2}};

Schedule schedule_of(std::span<const Term> terms, int groups, bool joint) {
  Schedule schedule;
  schedule.terms = terms;
  schedule.groups = groups;
  schedule.k_block = 64;
  schedule.joint = joint;
  return schedule;
}

// Bound that a second block of 64 adds to that of the first, in units of 2^-24 to first order, beside the
// block's own part. Slices of size 1 and 0 leave that part to the last term alone.
double additions(const Schedule& schedule, Accumulator accumulator, std::int64_t blocks) {
  const std::vector<double> ratios{1, 0};
  const auto first_order = [&](std::int64_t k) {
    return std::log1p(accumulation_bound(schedule, ratios, ratios, accumulator, fp16, k)) * 0x1p24;
  };
  return first_order(64 * blocks) - first_order(64);
}

TEST(OutsideRoundings, EnginesAddOnceABlock) {
  EXPECT_NEAR(additions(schedule_of(small_first, 1, false), Accumulator::h200, 5), 4, 1e-3);
  EXPECT_NEAR(additions(schedule_of(apart, 3, false), Accumulator::h200, 5), 4, 1e-3);
  EXPECT_NEAR(additions(schedule_of(apart, 3, true), Accumulator::h200, 5), 12, 1e-3);
}

TEST(OutsideRoundings, CublasAddsEveryTerm) {
  EXPECT_NEAR(additions(schedule_of(small_first, 1, false), Accumulator::cublas, 5), 12, 1e-3);
  EXPECT_NEAR(additions(schedule_of(apart, 3, false), Accumulator::cublas, 5), 4, 1e-3);
  EXPECT_NEAR(additions(schedule_of(apart, 3, true), Accumulator::cublas, 5), 12, 1e-3);
}

}  // namespace
}  // namespace kintsugi::core
