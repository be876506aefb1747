// Tests the steps of offloaded products: every element of C is computed once for each part of k, from vectors
// that are in their strips then.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "base/text/format_text.hpp"
#include "planner/offload.hpp"

namespace kintsugi::test {
namespace {

using core::Interval;
using core::OffloadLayout;
using core::OffloadLoad;
using core::OffloadPart;
using core::OffloadStep;
using core::Problem;
using core::Side;

// Contents of a strip: for each position the vector, over the inner indices and of the items of the last
// load.
struct Strip {
  std::map<std::int64_t, std::int64_t> vectors;
  Interval inner;
  Interval items;
};

class Strips {
 public:
  void load(const OffloadLoad& load) {
    Strip& strip = strips_[{load.side, load.strip}];
    EXPECT_EQ(load.replaces, load.position == 0 && !strip.vectors.empty());
    if (load.replaces) strip.vectors.clear();
    strip.inner = load.inner;
    strip.items = load.items;
    for (std::int64_t v = 0; v < load.vectors.count; ++v)
      strip.vectors[load.position + v] = load.vectors.first + v;
  }
  void expect(Side side, int strip, std::int64_t position, const Interval& vectors, const OffloadStep& step) {
    const Strip& held = strips_[{side, strip}];
    EXPECT_EQ(held.inner, step.inner);
    EXPECT_EQ(held.items, step.items);
    for (std::int64_t v = 0; v < vectors.count; ++v) {
      const auto found = held.vectors.find(position + v);
      ASSERT_NE(found, held.vectors.end());
      ASSERT_EQ(found->second, vectors.first + v);
    }
  }

 private:
  std::map<std::pair<Side, int>, Strip> strips_;
};

// Executes the steps on counts instead of elements.
void expect_complete(const Problem& problem, const OffloadPart& part, const OffloadLayout& layout) {
  // Inner indices of each element (item, row, column) so far.
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t> summed;
  Strips strips;
  for (const OffloadStep& step : core::offload_steps(problem, part, layout)) {
    for (const OffloadLoad& load : step.loads) strips.load(load);
    strips.expect(Side::a, step.strip_a, step.row, step.rows, step);
    strips.expect(Side::b, step.strip_b, step.column, step.columns, step);
    EXPECT_EQ(step.is_first, step.inner.first == 0);
    EXPECT_EQ(step.is_last, step.inner.end() == problem.k);
    EXPECT_LE(step.items.count, layout.items);
    ASSERT_TRUE(step.items.first >= part.items.first && step.items.end() <= part.items.end());
    for (std::int64_t item = step.items.first; item < step.items.end(); ++item) {
      for (std::int64_t i = step.rows.first; i < step.rows.end(); ++i) {
        for (std::int64_t j = step.columns.first; j < step.columns.end(); ++j) {
          std::int64_t& inner = summed[{item, i, j}];
          ASSERT_EQ(inner, step.inner.first) << item << ": " << i << ", " << j;
          inner = step.inner.end();
        }
      }
    }
  }
  EXPECT_EQ(static_cast<std::int64_t>(summed.size()), part.elements());
  for (const auto& [element, inner] : summed) ASSERT_EQ(inner, problem.k);
}

TEST(OffloadSteps, ComputeEveryElementOnceInAnyMemory) {
  std::mt19937_64 random(11);
  const auto below = [&](std::int64_t bound) {
    return std::uniform_int_distribution<std::int64_t>(0, bound - 1)(random);
  };
  constexpr std::array<std::size_t, 6> limits{100'000,   300'000,    1'000'000,
                                              3'000'000, 30'000'000, 1'000'000'000};
  int fitted = 0;
  int cut = 0;
  for (int number = 0; number < 200; ++number) {
    Problem problem;
    problem.m = 1 + below(number % 3 == 0 ? 700 : 200);
    problem.n = 1 + below(number % 5 == 0 ? 1500 : 300);
    problem.k = 1 + below(900);
    if (number % 7 == 0) {
      problem.batch_count = 2 + below(6);
      problem.m = 1 + problem.m % 90;
      problem.n = 1 + problem.n % 90;
    }
    const std::size_t bytes = limits[static_cast<std::size_t>(below(limits.size()))];
    SCOPED_TRACE(fmt::format("m {} n {} k {} bytes {}", problem.m, problem.n, problem.k, bytes));
    for (const OffloadPart& part : core::offload_parts(problem, 1 + static_cast<int>(below(3)))) {
      const bool may_cut_k = below(2) == 0;
      const OffloadLayout layout = core::fit_layout(problem, part, bytes, may_cut_k);
      if (layout.rows == 0) continue;
      ++fitted;
      cut += layout.inner < problem.k ? 1 : 0;
      EXPECT_TRUE(may_cut_k || layout.inner == problem.k);
      EXPECT_LE(core::strip_bytes(problem, layout), bytes);
      expect_complete(problem, part, layout);
    }
  }
  EXPECT_GT(fitted, 100);
  EXPECT_GT(cut, 10);
}

// Loads of A and B alternate: after two of each, four of sixteen tiles of C are complete.
TEST(OffloadSteps, GrowWhereAllFitsTheDevice) {
  Problem problem;
  problem.type = core::OperandType::f64;
  problem.m = problem.n = problem.k = 16384;
  const OffloadPart part{{0, problem.m}, {0, problem.n}};
  const OffloadLayout layout = core::fit_layout(problem, part, std::size_t{1} << 40, false);
  const std::vector<OffloadStep> steps = core::offload_steps(problem, part, layout);
  ASSERT_EQ(steps.size(), 16U);
  std::int64_t products = 0;
  std::int64_t loaded = 0;
  for (const OffloadStep& step : steps) {
    for (const OffloadLoad& load : step.loads) loaded += load.vectors.count;
    products += step.rows.count * step.columns.count;
    // The share of C that is complete grows with the square of what was loaded, but for one load.
    const std::int64_t complete = (loaded / 2 - 2048) * (loaded / 2 - 2048);
    EXPECT_GE(products, std::min(complete, problem.m * problem.n / 16 * 15)) << loaded;
  }
  EXPECT_EQ(products, problem.m * problem.n);
  EXPECT_LE(steps.back().rows.count * steps.back().columns.count, problem.m * problem.n / 8)
      << "little is left to multiply after the last load";
}

TEST(OffloadSteps, LoadTheShorterSideOfASmallCAtOnce) {
  Problem problem;
  problem.m = 8000;
  problem.n = 9000;
  problem.k = 64;
  const OffloadPart part{{0, problem.m}, {0, problem.n}};
  const OffloadLayout layout = core::fit_layout(problem, part, std::size_t{1} << 40, false);
  const std::vector<OffloadStep> steps = core::offload_steps(problem, part, layout);
  ASSERT_GT(steps.size(), 4U);
  EXPECT_EQ(steps.front().loads.size(), 2U);
  for (const OffloadStep& step : steps) EXPECT_EQ(step.rows, part.rows);
  EXPECT_LE(steps.back().columns.count, problem.n / 8);
}

TEST(OffloadParts, DivideTheLongerSideOfALargeC) {
  Problem problem;
  problem.m = 300;
  problem.n = 5000;
  const std::vector<OffloadPart> parts = core::offload_parts(problem, 3);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[1].columns.first, parts[0].columns.end());
  EXPECT_EQ(parts[2].columns.end(), 5000);
  EXPECT_EQ(parts[1].columns.first % 128, 0);
  problem.n = 900;
  EXPECT_EQ(core::offload_parts(problem, 3).size(), 1U) << "narrower parts gain nothing";
}

}  // namespace
}  // namespace kintsugi::test
