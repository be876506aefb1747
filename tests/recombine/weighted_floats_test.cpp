// Tests that recombining many elements at a time gives the bits of the scalar steps that define an element.
#include "recombine/recombine.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "arith/epilogue.hpp"
#include "arith/weighted_sum.hpp"

namespace kintsugi::core {
namespace {

// A random recombination; some rows and columns are not finite, and some sums, scalars and old elements are
// zero, infinite or NaN.
struct RandomSums {
  explicit RandomSums(std::uint64_t seed) : random(seed) {
    m = between(1, seed % 5 == 0 ? 600 : 40);
    n = between(1, 40);
    groups = between(1, 4);
    for (int g = 0; g < groups; ++g) exponents.push_back(-between(0, 30));
    rows = ranges(m);
    columns = ranges(n);
    for (int e = 0; e < groups * m * n; ++e) sums.push_back(number());
    by_rows = seed % 2 == 0;
    padding = between(0, 3);
    memory.resize(static_cast<std::size_t>((by_rows ? m : n) * ld()));
    for (float& x : memory) x = number();
    alpha = between(0, 3) == 0 ? 1 : number();
    beta = between(0, 1) == 0 ? 0 : number();
  }

  int between(int min, int max) { return std::uniform_int_distribution<int>(min, max)(random); }
  float number() {
    const int kind = between(0, 60);
    if (kind == 0) return 0;
    if (kind == 1) return -INFINITY;
    if (kind == 2) return NAN;
    return std::ldexp(std::uniform_real_distribution<float>(-2, 2)(random), between(-60, 60));
  }
  std::vector<VectorRange> ranges(int count) {
    std::vector<VectorRange> all(static_cast<std::size_t>(count));
    for (VectorRange& range : all) {
      range.scale = between(-100, 160);
      range.flags = static_cast<std::uint32_t>(between(0, 9) == 0 ? +VectorRange::has_nan : 0);
    }
    return all;
  }
  std::int64_t ld() const { return (by_rows ? n : m) + padding; }
  MatrixView<float> view(std::vector<float>& c) const {
    return {c.data(), m, n, by_rows ? ld() : 1, by_rows ? 1 : ld()};
  }
  Accumulators accumulators() {
    return {reinterpret_cast<std::byte*>(sums.data()), m, n, groups, SumType::f32};
  }

  std::mt19937_64 random;
  int m, n, groups, padding;
  std::vector<int> exponents;
  std::vector<VectorRange> rows, columns;
  std::vector<float> sums, memory;
  float alpha, beta;
  bool by_rows;
};

std::vector<float> element_by_element(RandomSums& drawn) {
  std::vector<float> memory = drawn.memory;
  const MatrixView<float> c = drawn.view(memory);
  const Accumulators sums = drawn.accumulators();
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      const VectorRange& row = drawn.rows[static_cast<std::size_t>(i)];
      const VectorRange& column = drawn.columns[static_cast<std::size_t>(j)];
      if (!row.finite() || !column.finite()) continue;
      FloatingSum sum(0);
      for (int g = 0; g < drawn.groups; ++g)
        sum.add(drawn.exponents[static_cast<std::size_t>(g)], sums.group<float>(g)[i + j * c.rows]);
      c(i, j) = epilogue(sum.value(), -(row.scale + column.scale), drawn.alpha, drawn.beta,
                         drawn.beta == 0 ? nullptr : &c(i, j));
    }
  }
  return memory;
}

// Compares bits; all NaN count as equal.
void expect_same(const std::vector<float>& computed, const std::vector<float>& expected, std::uint64_t seed) {
  for (std::size_t e = 0; e < expected.size(); ++e) {
    if (std::isnan(expected[e]) && std::isnan(computed[e])) continue;
    ASSERT_EQ(std::memcmp(&computed[e], &expected[e], sizeof(float)), 0)
        << "seed " << seed << ", element " << e << " in memory: " << computed[e] << " instead of "
        << expected[e];
  }
}

TEST(WeightedFloats, HaveTheBitsOfAScalarLoop) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    RandomSums drawn(seed);
    const std::vector<float> expected = element_by_element(drawn);
    std::vector<float> memory = drawn.memory;
    recombine_weighted(drawn.accumulators(), drawn.exponents, drawn.rows, drawn.columns, drawn.alpha,
                       drawn.beta, drawn.view(memory), 1 + static_cast<int>(seed % 3));
    expect_same(memory, expected, seed);
  }
}

TEST(WeightedFloats, OldElementIsNotReadIfBetaIsZero) {
  RandomSums drawn(4);
  drawn.beta = 0;
  const std::vector<float> expected = element_by_element(drawn);
  std::vector<float> memory = drawn.memory;
  const MatrixView<float> c = drawn.view(memory);
  for (std::int64_t i = 0; i < c.rows; ++i) {
    for (std::int64_t j = 0; j < c.columns; ++j) {
      if (drawn.rows[static_cast<std::size_t>(i)].finite() &&
          drawn.columns[static_cast<std::size_t>(j)].finite()) {
        c(i, j) = NAN;
      }
    }
  }
  recombine_weighted(drawn.accumulators(), drawn.exponents, drawn.rows, drawn.columns, drawn.alpha, 0.0F, c,
                     1);
  expect_same(memory, expected, 4);
}

}  // namespace
}  // namespace kintsugi::core
