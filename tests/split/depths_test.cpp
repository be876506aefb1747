// Tests the mean depths of vectors in every storage: the vectorized loops, and the loop for all numbers.
#include "split/ranges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/view.hpp"

namespace kintsugi::test {
namespace {

using core::MatrixView;
using core::VectorRange;

constexpr std::int64_t vector_count = 37;
// Vectors are read in pieces of 2048 elements.
constexpr std::int64_t lengths[] = {29, 4100};

// Numbers of many binades, a tenth of them zeros; with `others`, some are subnormal, infinite or NaN.
std::vector<double> random_vectors(std::mt19937_64& random, bool others, std::int64_t vector_length) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> elements;
  for (std::int64_t e = 0; e < vector_count * vector_length; ++e) {
    const double x =
        std::ldexp(static_cast<double>(random()) - 0x1p63, static_cast<int>(random() % 800) - 400);
    const std::uint64_t kind = random() % 200;
    elements.push_back(kind < 20              ? 0.0
                       : !others || kind > 23 ? x
                       : kind == 20           ? std::numeric_limits<double>::denorm_min()
                       : kind == 21           ? -infinity
                       : kind == 22           ? std::nan("")
                                              : std::numeric_limits<double>::min() / 3);
  }
  return elements;
}

void expect_depths(const std::vector<double>& elements, const MatrixView<const double>& view) {
  std::vector<VectorRange> ranges(vector_count);
  core::find_depths(view, ranges, 2);
  for (std::int64_t v = 0; v < vector_count; ++v) {
    std::vector<int> exponents;
    for (std::int64_t p = 0; p < view.columns; ++p) {
      const double x = elements[static_cast<std::size_t>(v * view.columns + p)];
      if (x != 0 && std::isfinite(x)) exponents.push_back(std::ilogb(x));
    }
    const auto [smallest, largest] = std::ranges::minmax(exponents);
    int depth = 0;
    for (const int exponent : exponents) depth += largest - exponent;
    const VectorRange& range = ranges[static_cast<std::size_t>(v)];
    EXPECT_EQ(range.elements, exponents.size()) << v;
    EXPECT_EQ(range.largest, largest) << v;
    EXPECT_EQ(range.smallest, smallest) << v;
    EXPECT_EQ(range.depth, depth) << v;
  }
}

void expect_depths_in_every_storage(const std::vector<double>& elements, std::int64_t length) {
  expect_depths(elements, {elements.data(), vector_count, length, length, 1});
  for (const std::int64_t row_stride : {1, 2}) {
    const std::int64_t column_stride = row_stride * vector_count + 3;
    std::vector<double> stored(static_cast<std::size_t>(column_stride * length), 7.0);
    for (std::int64_t v = 0; v < vector_count; ++v) {
      for (std::int64_t p = 0; p < length; ++p)
        stored[static_cast<std::size_t>(v * row_stride + p * column_stride)] =
            elements[static_cast<std::size_t>(v * length + p)];
    }
    expect_depths(elements, {stored.data(), vector_count, length, row_stride, column_stride});
  }
}

TEST(Depths, AreFoundInEveryStorage) {
  std::mt19937_64 random(3);
  for (const std::int64_t length : lengths) {
    for (const bool others : {false, true})
      expect_depths_in_every_storage(random_vectors(random, others, length), length);
  }
}

}  // namespace
}  // namespace kintsugi::test
