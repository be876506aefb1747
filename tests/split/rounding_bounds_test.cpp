// Compares sums over vectors, which are computed for eight elements at once, with sums over single elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "arith/residue/residue.hpp"
#include "arith/residue/residue_scale.hpp"
#include "base/embedding.hpp"
#include "schemes/ozaki2.hpp"
#include "split/norms.hpp"
#include "split/ranges.hpp"

namespace kintsugi::core {
namespace {

constexpr std::int64_t summed_vectors = 101;
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

// Elements of a narrow range, whose scaled magnitudes are the largest possible ones.
template <class T>
std::vector<T> make_ordinary_elements() {
  std::vector<T> x(static_cast<std::size_t>(2 * summed_vectors * (summed_length + 1)));
  int number = 0;
  for (T& element : x) {
    ++number;
    element = static_cast<T>(number % 50 == 0 ? 0 : number % 50 == 1 ? 0.3 : 2 - 0x1p-20 * (number % 64));
  }
  return x;
}

template <class T>
std::vector<MatrixView<const T>> make_views(const std::vector<T>& x) {
  return {{x.data(), summed_vectors, summed_length, 1, summed_vectors},
          {x.data(), summed_vectors, summed_length, summed_length + 1, 1},
          {x.data(), summed_vectors, summed_length, 2, 2 * summed_vectors}};
}

// The same layouts with complex elements, as both operands' embeddings.
template <class T>
std::vector<EmbeddedView<T>> make_embedded_views(const std::vector<T>& x) {
  const auto* const pairs = reinterpret_cast<const std::complex<T>*>(x.data());
  constexpr std::int64_t vectors = summed_vectors / 2, length = summed_length / 2;
  std::vector<EmbeddedView<T>> views;
  for (const MatrixView<const std::complex<T>>& matrix :
       {MatrixView<const std::complex<T>>{pairs, vectors, length, 1, vectors},
        MatrixView<const std::complex<T>>{pairs, vectors, length, length + 1, 1},
        MatrixView<const std::complex<T>>{pairs, vectors, length, 2, 2 * vectors}}) {
    views.push_back({matrix, false, true});
    views.push_back({matrix, true, false});
  }
  return views;
}

SplitRule make_rule(int moduli) {
  Program program = schemes::ozaki2_program(moduli);
  schemes::fit_ozaki2(program, OperandType::f64, summed_length);
  return program.split_a;
}

double finite(double x) { return std::isfinite(x) ? x : 0; }

template <class View>
void expect_bounds_of_single_elements(const View& view, const SplitRule& rule) {
  std::vector<VectorRange> ranges(static_cast<std::size_t>(view.rows));
  find_ranges(view, rule, std::span(ranges), 1);
  std::vector<RoundingBound> bounds(ranges.size());
  find_rounding_bounds(view, ranges, {}, std::span(bounds), 2);
  for (std::int64_t v = 0; v < view.rows; ++v) {
    const TwoFactors factors = two_factors(ranges[static_cast<std::size_t>(v)].scale);
    RoundingBound expected;
    for (std::int64_t p = 0; p < view.columns; ++p) {
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

template <class T>
void expect_bounds_in_every_layout(int moduli) {
  const std::vector<T> elements = make_elements<T>();
  const SplitRule rule = make_rule(moduli);
  for (const auto& view : make_views(elements)) expect_bounds_of_single_elements(view, rule);
  for (const auto& view : make_embedded_views(elements)) expect_bounds_of_single_elements(view, rule);
}

TEST(RoundingBounds, AreSumsOverSingleElementsInEveryLayout) {
  for (const int moduli : {7, 16, 23}) {  // integers of 22, 57 and 84 bits
    expect_bounds_in_every_layout<float>(moduli);
    expect_bounds_in_every_layout<double>(moduli);
  }
}

template <class View>
void expect_norms_of_single_elements(const View& view) {
  std::vector<VectorRange> ranges(static_cast<std::size_t>(view.rows));
  std::vector<VectorNorm> norms(ranges.size());
  find_ranges(view, make_rule(16), std::span(ranges), 1, {}, std::span(norms));
  int largest = 0;
  for (std::int64_t v = 0; v < view.rows; ++v) {
    const VectorRange& range = ranges[static_cast<std::size_t>(v)];
    VectorRange expected_range;
    NormSums sums;
    for (std::int64_t p = 0; p < view.columns; ++p) {
      extend(expected_range, static_cast<double>(view(v, p)));
      sums.add(static_cast<double>(view(v, p)), norm_scaling(range));
    }
    EXPECT_EQ(range.largest, expected_range.largest) << v;
    EXPECT_EQ(range.smallest, expected_range.smallest) << v;
    EXPECT_EQ(range.raised, expected_range.raised) << v;
    EXPECT_EQ(range.flags, expected_range.flags) << v;
    largest = std::max(largest, bits_of_sum(sums.squares));
    if (range.flags != 0) continue;
    const VectorNorm& norm = norms[static_cast<std::size_t>(v)];
    const VectorNorm expected = sums.norm(view.columns);
    EXPECT_EQ(norm.elements, expected.elements) << v;
    EXPECT_EQ(norm.bits, expected.bits) << v;
    EXPECT_EQ(norm.mean, expected.mean) << v;
    EXPECT_EQ(norm.depth, expected.depth) << v;
  }
  EXPECT_EQ(largest_norm_bits(view, ranges, {}, 2), largest);
}

template <class T>
void expect_norms_in_every_layout() {
  for (const std::vector<T>& elements : {make_elements<T>(), make_ordinary_elements<T>()}) {
    for (const auto& view : make_views(elements)) expect_norms_of_single_elements(view);
    for (const auto& view : make_embedded_views(elements)) expect_norms_of_single_elements(view);
  }
}

TEST(RangesAndNorms, AreThoseOfSingleElementsInEveryLayout) {
  expect_norms_in_every_layout<float>();
  expect_norms_in_every_layout<double>();
}

}  // namespace
}  // namespace kintsugi::core
