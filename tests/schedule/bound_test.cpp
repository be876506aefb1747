// Tests how many roundings outside the engine a schedule's bound counts.
#include "schedule/accumulator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "formats/formats.hpp"

namespace kintsugi::core {
namespace {

constexpr Term small_first[] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 0}};
constexpr Term one_group_a_term[] = {{1, 0, 0}, {0, 1, 1}, {0, 0, 2}};

Schedule schedule_of(std::span<const Term> terms, int groups, bool joint) {
  Schedule schedule;
  schedule.terms = terms;
  schedule.groups = groups;
  schedule.k_block = 64;
  schedule.joint = joint;
  return schedule;
}

// Sum that further k-blocks of 64 add to the bound of one k-block, in units of 2^-24 to first order: one unit
// for each rounding outside the engine. Slices of size 1 and 0 leave the engine's own error to the last term.
double outside_additions(const Schedule& schedule, Accumulator accumulator, std::int64_t k_blocks) {
  const std::vector<double> ratios{1, 0};
  const auto first_order = [&](std::int64_t k) {
    return std::log1p(accumulation_bound(schedule, ratios, ratios, accumulator, fp16, k)) * 0x1p24;
  };
  return first_order(64 * k_blocks) - first_order(64);
}

TEST(OutsideRoundings, EnginesRoundOnceAKBlockAndJointGroup) {
  EXPECT_NEAR(outside_additions(schedule_of(small_first, 1, false), Accumulator::h200, 5), 4, 1e-3);
  EXPECT_NEAR(outside_additions(schedule_of(one_group_a_term, 3, false), Accumulator::h200, 5), 4, 1e-3);
  EXPECT_NEAR(outside_additions(schedule_of(one_group_a_term, 3, true), Accumulator::h200, 5), 12, 1e-3);
}

TEST(OutsideRoundings, CublasRoundsEveryTermOfAGroup) {
  EXPECT_NEAR(outside_additions(schedule_of(small_first, 1, false), Accumulator::cublas, 5), 12, 1e-3);
  EXPECT_NEAR(outside_additions(schedule_of(one_group_a_term, 3, false), Accumulator::cublas, 5), 4, 1e-3);
  EXPECT_NEAR(outside_additions(schedule_of(one_group_a_term, 3, true), Accumulator::cublas, 5), 12, 1e-3);
}

}  // namespace
}  // namespace kintsugi::core
