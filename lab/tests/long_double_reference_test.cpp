#include "lab/numerics/long_double_reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/measure/special_numbers.hpp"

namespace kintsugi::lab {
namespace {

measure::ElementError element_at(std::int64_t i, std::int64_t j, double computed) {
  measure::ElementError element;
  element.i = i;
  element.j = j;
  element.computed = computed;
  return element;
}

TEST(LongDoubleReference, SumsTheNamedElements) {
  const std::vector<float> a{1, 2, 3, 4, 5, 6};      // 2 x 3
  const std::vector<float> b{1, 0, -1, 2, 0.5F, 8};  // 3 x 2
  const std::vector<measure::ElementError> elements{element_at(1, 1, 0), element_at(0, 0, 0),
                                                    element_at(1, 0, 0)};
  const auto sums = long_double_sums<float>({a.data(), 2, 3, 3, 1}, {b.data(), 3, 2, 2, 1}, elements);
  EXPECT_EQ(sums, (std::vector<long double>{58, 0.5L, 2}));
}

// Sums are in the order of k and have 64 bits of significand: 1 + 2^-63 is kept, 1 + 2^-64 is not.
TEST(LongDoubleReference, RoundsTo64Bits) {
  if (!has_80_bit_long_double) GTEST_SKIP() << "long double has " << LDBL_MANT_DIG << " bits here";
  const std::vector<double> a{1, 1, 1};
  const std::vector<double> b{1, 0x1p-63, -1};
  const std::vector<double> finer{1, 0x1p-64, -1};
  const std::vector<measure::ElementError> elements{element_at(0, 0, 0)};
  EXPECT_EQ(long_double_sums<double>({a.data(), 1, 3, 3, 1}, {b.data(), 3, 1, 1, 1}, elements)[0], 0x1p-63L);
  EXPECT_EQ(long_double_sums<double>({a.data(), 1, 3, 3, 1}, {finer.data(), 3, 1, 1, 1}, elements)[0], 0);
}

TEST(LongDoubleReference, MeanRelativeErrorLeavesOutZeroAndSpecialSums) {
  const std::vector<measure::ElementError> elements{element_at(0, 0, 3), element_at(0, 1, -1),
                                                    element_at(0, 2, 7), element_at(0, 3, 1)};
  EXPECT_DOUBLE_EQ(mean_relative_error(elements, {4, -2, 7, 1}), (0.25 + 0.5 + 0 + 0) / 4);
  // Sums that are 0 or special are left out.
  EXPECT_DOUBLE_EQ(mean_relative_error(elements, {4, 0, measure::infinity, measure::nan}), 0.25);
  EXPECT_EQ(mean_relative_error(elements, {0, 0, 0, 0}), 0);
  EXPECT_EQ(mean_relative_error({element_at(0, 0, HUGE_VAL)}, {1}), HUGE_VAL);
}

}  // namespace
}  // namespace kintsugi::lab
