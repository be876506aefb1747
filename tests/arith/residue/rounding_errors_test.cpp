// Rounding errors from the sums that norms and splits find: they must bound those of the vector's integers.
#include "arith/residue/rounding_errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "arith/residue/residue.hpp"

namespace kintsugi::core {
namespace rounding_errors_of_vectors {
namespace {

// Elements whose significands have at most a drawn number of bits, so that many vectors are exact.
std::vector<double> draw_vector(std::mt19937_64& random) {
  std::vector<double> x(random() % 60 + 1);
  const auto bits = static_cast<int>(random() % 53 + 1);
  const auto base = static_cast<int>(random() % 2100) - 1060;
  const auto span = static_cast<unsigned>(random() % 40 + 1);
  for (double& element : x) {
    const auto significand = static_cast<double>(random() >> (64 - bits));
    const double sign = random() % 2 == 0 ? -1 : 1;
    element = sign * std::ldexp(significand, std::min(base + static_cast<int>(random() % span), 960) - bits);
  }
  return x;
}

// The sums that norms and split find of the vector. Rounding errors are summed exactly.
VectorMagnitudes magnitudes_of(const std::vector<double>& x, int scale) {
  VectorMagnitudes result{.summed = 1, .counted = 1};
  double errors = 0;
  for (const double element : x) {
    result.sum += std::fabs(element);
    const double scaled = times_power_of_two(element, scale);
    errors += std::fabs(scaled - nearest_integer(scaled));
  }
  result.errors = static_cast<std::uint64_t>(std::ceil(std::ldexp(errors, VectorMagnitudes::error_bits)));
  return result;
}

TEST(RoundingErrorsFromMagnitudes, BoundThoseOfTheVector) {
  const auto seed = std::random_device{}();
  std::mt19937_64 random(seed);
  constexpr int rounds = 40000;
  int exact = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::vector<double> x = draw_vector(random);
    VectorRange range;
    for (const double element : x) extend(range, element);
    const bool is_zero = (range.flags & VectorRange::all_zero) != 0;
    range.scale = is_zero ? 0 : static_cast<int>(random() % 90) - range.largest;
    const RoundingErrors found =
        rounding_errors(magnitudes_of(x, range.scale), range, static_cast<std::int64_t>(x.size()));
    RoundingErrors expected;
    bool is_exact = true;
    for (const double element : x) {
      const double scaled = times_power_of_two(element, range.scale);
      const double integer = nearest_integer(scaled);
      is_exact = is_exact && times_power_of_two(integer, -range.scale) == element;
      expected.errors += std::fabs(scaled - integer);
      expected.magnitudes += std::fabs(integer);
      expected.largest = std::max(expected.largest, std::fabs(integer));
    }
    ASSERT_LE(expected.errors, found.errors) << i << ", seed " << seed;
    ASSERT_LE(found.errors, expected.errors + 0x1p-31) << i << ", seed " << seed;
    ASSERT_LE(expected.magnitudes, found.magnitudes * (1 + 0x1p-40)) << i << ", seed " << seed;
    ASSERT_LE(expected.largest, found.largest) << i << ", seed " << seed;
    ASSERT_EQ(is_exact, found.errors == 0) << i << ", seed " << seed;
    exact += is_exact ? 1 : 0;
  }
  EXPECT_GT(exact, rounds / 10);
  EXPECT_LT(exact, rounds - rounds / 10);
}

TEST(RoundingErrorsFromMagnitudes, OfSpecialVectors) {
  EXPECT_EQ(rounding_errors({}, VectorRange{}, 5).errors, 0) << "zeros";
  VectorRange range;
  extend(range, 1.0);
  extend(range, 0x1p-1070);
  range.scale = 60;
  const VectorMagnitudes sums{.sum = 1, .summed = 1, .counted = 1};
  EXPECT_GT(rounding_errors(sums, range, 2).errors, 0)
      << "2^-1010 is a double, but other such elements lose bits";
  extend(range, std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounding_errors(sums, range, 6).errors, 3) << "half of the length";
}

}  // namespace
}  // namespace rounding_errors_of_vectors
}  // namespace kintsugi::core
