#include "arith/range.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tools/measure/generators/random.hpp"

namespace kintsugi::test {
namespace {

using measure::Random;

// A vector's range with the depth that set_depth() finds, and its depth by definition.
struct Depths {
  core::VectorRange range;
  std::int64_t depth = 0;
};

template <class T>
Depths depths_of(const std::vector<T>& vector) {
  constexpr int lowest = std::numeric_limits<T>::min_exponent - 2;
  Depths result;
  for (const T x : vector) core::extend(result.range, x);
  std::uint32_t elements = 0;
  std::uint64_t biased = 0;
  for (const T x : vector) {
    if (x == 0) continue;
    ++elements;
    result.depth += result.range.largest - std::ilogb(x);
    biased += static_cast<std::uint64_t>(std::max(std::ilogb(x) - lowest, 0));
  }
  core::set_depth<T>(result.range, elements, biased);
  return result;
}

template <class T>
void expect_bounds(int lowest_exponent, int highest_exponent, bool has_subnormals) {
  Random random(std::random_device{}());
  for (int round = 0; round < 2000; ++round) {
    std::vector<T> vector(static_cast<std::size_t>(random.integer(1, 40)));
    for (T& x : vector) {
      const auto exponent = static_cast<int>(random.integer(lowest_exponent, highest_exponent));
      x = random.integer(0, 9) == 0 ? T(0) : std::ldexp(static_cast<T>(1 + random.unit() / 2), exponent);
    }
    if (has_subnormals)
      vector[0] = std::numeric_limits<T>::denorm_min() * static_cast<T>(random.integer(1, 99));
    const Depths depths = depths_of(vector);
    const std::int64_t found = depths.range.depth;
    if (!has_subnormals) {
      ASSERT_EQ(found, depths.depth);
      continue;
    }
    constexpr std::int64_t bits = std::numeric_limits<T>::digits - 1;  // binades of subnormal numbers
    const std::int64_t most = depths.depth + bits * depths.range.elements;
    ASSERT_GE(found, depths.depth);
    ASSERT_GE(found, 64 * std::int64_t{depths.range.elements});
    ASSERT_LE(found, std::max(most, 64 * std::int64_t{depths.range.elements}));
  }
}

TEST(DepthOfVector, IsExactForNormalElements) {
  expect_bounds<float>(-126, 126, false);
  expect_bounds<double>(-1022, 1022, false);
}

TEST(DepthOfVector, IsAnUpperBoundWithSubnormalElements) {
  expect_bounds<float>(-149, -100, true);
  expect_bounds<float>(-149, 100, true);
  expect_bounds<float>(-149, -130, true);
  expect_bounds<float>(-20, 0, true);
  expect_bounds<double>(-1074, 0, true);
  expect_bounds<double>(-1074, -1030, true);
}

// One half uniform numbers and one half subnormal ones: of both operands together some 150 binades, which
// bf16x6 accepts.
TEST(DepthOfVector, IsTightForEvenMixtures) {
  Random random(std::random_device{}());
  std::vector<float> vector(4096);
  for (std::size_t i = 0; i < vector.size(); ++i) {
    vector[i] = i % 2 == 0 ? static_cast<float>(random.symmetric())
                           : std::ldexp(static_cast<float>(random.unit()), -126);
  }
  const Depths depths = depths_of(vector);
  EXPECT_LT(depths.range.depth, 80 * depths.range.elements);
  EXPECT_GE(depths.range.depth, depths.depth);
}

TEST(DepthOfVector, IsUnknownBeyond31Bits) {
  core::VectorRange range{.largest = 127, .smallest = -126, .flags = 0};
  core::set_depth<float>(range, 1U << 24, std::uint64_t{1} << 24);
  EXPECT_EQ(range.depth, core::VectorRange::unknown_depth);
  EXPECT_EQ(range.elements, 0);
  core::set_depth<float>(range, (1U << 24) + 1, std::uint64_t{254} << 24);
  EXPECT_EQ(range.depth, core::VectorRange::unknown_depth);
}

}  // namespace
}  // namespace kintsugi::test
