// Compares sums over vectors, which are computed for eight elements at once, with sums over single elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "arith/residue/residue.hpp"
#include "arith/residue/residue_scale.hpp"
#include "schemes/ozaki2.hpp"
#include "split/norms.hpp"
#include "split/ranges.hpp"

namespace kintsugi::core {
namespace {

constexpr std::int64_t summed_vectors = 37;
constexpr std::int64_t summed_length = 130;

// Elements of wide range, with zeros, integers, subnormal and special numbers, for views of three layouts.
template <class T>
std::vector<T> make_elements() {
  std::mt19937_64 random(7);
  std::vector<T> x(static_cast<std::size_t>(2 * summed_vectors * (summed_length + 1)));
  for (T& element : x) {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
    const double scaled = uniform * std::exp2(static_cast<int>(random() % 120) - 60);
    const std::uint64_t kind = random() % 9;
    element = static_cast<T>(kind == 0 ? 0 : kind < 3 ? std::round(scaled) : scaled);
  }
  x[1] = std::numeric_limits<T>::denorm_min();
  x[2 * summed_length] = std::numeric_limits<T>::infinity();
  x[4 * summed_length + 3] = std::numeric_limits<T>::quiet_NaN();
  return x;
}

template <class T>
std::vector<MatrixView<const T>> make_views(const std::vector<T>& x) {
  return {{x.data(), summed_vectors, summed_length, 1, summed_vectors},
          {x.data(), summed_vectors, summed_length, summed_length + 1, 1},
          {x.data(), summed_vectors, summed_length, 2, 2 * summed_vectors}};
}

SplitRule make_rule(int moduli) {
  Program program = schemes::ozaki2_program(moduli);
  schemes::fit_ozaki2(program, OperandType::f64, summed_length);
  return program.split_a;
}

double finite(double x) { return std::isfinite(x) ? x : 0; }

template <class T>
void expect_bounds_of_single_elements(int moduli) {
  const std::vector<T> elements = make_elements<T>();
  const SplitRule rule = make_rule(moduli);
  for (const MatrixView<const T>& view : make_views(elements)) {
    std::vector<VectorRange> ranges(summed_vectors);
    find_ranges(view, rule, std::span(ranges), 1);
    std::vector<RoundingBound> bounds(summed_vectors);
    find_rounding_bounds(view, ranges, {}, std::span(bounds), 2);
    for (std::int64_t v = 0; v < summed_vectors; ++v) {
      const TwoFactors factors = two_factors(ranges[static_cast<std::size_t>(v)].scale);
      RoundingBound expected;
      for (std::int64_t p = 0; p < summed_length; ++p) {
        const double x = finite(static_cast<double>(view(v, p)));
        const double scaled = x * factors.first * factors.second;
        const double integer = nearest_integer(scaled);
        if (integer != scaled || (integer == 0 && x != 0)) ++expected.inexact;
        expected.magnitudes += std::abs(integer);
      }
      const RoundingBound& bound = bounds[static_cast<std::size_t>(v)];
      EXPECT_EQ(bound.inexact, expected.inexact) << v;
      EXPECT_NEAR(bound.magnitudes, expected.magnitudes, 0x1p-40 * expected.magnitudes) << v;
    }
  }
}

TEST(RoundingBounds, AreSumsOverSingleElementsInEveryLayout) {
  for (const int moduli : {7, 16, 23}) {  // integers of 22, 57 and 84 bits
    expect_bounds_of_single_elements<float>(moduli);
    expect_bounds_of_single_elements<double>(moduli);
  }
}

template <class T>
void expect_largest_norm_of_single_elements() {
  const std::vector<T> elements = make_elements<T>();
  for (const MatrixView<const T>& view : make_views(elements)) {
    std::vector<VectorRange> ranges(summed_vectors);
    find_ranges(view, make_rule(16), std::span(ranges), 1);
    int expected = 0;
    for (std::int64_t v = 0; v < summed_vectors; ++v) {
      NormSums sums;
      for (std::int64_t p = 0; p < summed_length; ++p)
        sums.add(static_cast<double>(view(v, p)), norm_scaling(ranges[static_cast<std::size_t>(v)]));
      expected = std::max(expected, bits_of_sum(sums.squares));
    }
    EXPECT_EQ(largest_norm_bits(view, ranges, {}, 2), expected);
  }
}

TEST(LargestNorm, IsThatOfSingleElementsInEveryLayout) {
  expect_largest_norm_of_single_elements<float>();
  expect_largest_norm_of_single_elements<double>();
}

}  // namespace
}  // namespace kintsugi::core
