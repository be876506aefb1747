#include "lab/numerics/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/measure/special_numbers.hpp"

namespace kintsugi::lab {
namespace {

TEST(Histogram, EdgesAreSymmetricWithEightInADecade) {
  const std::vector<double>& edges = signed_logarithmic_edges();
  ASSERT_EQ(edges.size(), 2U * 81);
  EXPECT_TRUE(std::is_sorted(edges.begin(), edges.end()));
  for (std::size_t i = 0; i < edges.size(); ++i) EXPECT_EQ(edges[i], -edges[edges.size() - 1 - i]);
  EXPECT_EQ(edges.back(), 1);
  EXPECT_DOUBLE_EQ(edges[81], 1e-10);
  EXPECT_DOUBLE_EQ(edges[81 + 8], 1e-9);
  EXPECT_DOUBLE_EQ(edges[81 + 4] * edges[81 + 4], 1e-10 * 1e-9);
}

TEST(Histogram, BinsAreHalfOpen) {
  const std::vector<double> edges{-1, -0.5, 0.5, 1};
  const std::vector<double> values{-measure::infinity, -1.5,        -1, -0.6, -0.5, 0, -0.0, 0.499, 0.5, 1,
                                   measure::infinity,  std::nan("")};
  EXPECT_EQ(histogram(values, edges), (std::vector<std::int64_t>{2, 2, 4, 1, 2}));
  EXPECT_EQ(histogram({}, edges), (std::vector<std::int64_t>(5)));
}

}  // namespace
}  // namespace kintsugi::lab
