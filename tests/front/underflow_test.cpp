// Tests native arithmetic under contracts where products underflow or sums overflow on the way, against MPFR.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "tests/support/c_objects.hpp"
#include "tests/support/complex_reference.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/pair_reference.hpp"

namespace kintsugi::test {
namespace {

template <class T>
double unit_of() {
  return std::is_same_v<core::RealOf<T>, float> ? 0x1p-24
         : std::is_same_v<T, DoubleDouble>      ? 0x1p-104
                                                : 0x1p-53;
}
template <class T>
double smallest_of() {
  return std::is_same_v<core::RealOf<T>, float> ? 0x1p-149 : 0x1p-1074;
}
template <class T>
double largest_of() {
  return std::is_same_v<core::RealOf<T>, float> ? std::numeric_limits<float>::max()
                                                : std::numeric_limits<double>::max();
}

std::vector<std::string> engines() {
  if (has_cpu_engine()) return {"cpu", "reference"};
  return {"reference"};
}

// A part of an exact element, with the magnitudes that bounds are relative to: |alpha| |A||B| and |beta C|.
struct Part {
  Mpfr value, products, old;
};

template <class T>
std::vector<Part> exact_element(GemmDataOf<T>& data, const T& old, std::int64_t i, std::int64_t j,
                                std::int64_t t) {
  if constexpr (core::is_complex<T>) {
    const auto zero = std::complex<core::RealOf<T>>();
    const ExactParts exact = exact_parts(data, old, i, j, t);
    GemmCase old_term = data.test();
    old_term.k = 1;
    old_term.op_a = old_term.op_b = KINTSUGI_OP_N;
    std::vector<Part> parts{{exact.re, exact.re_magnitude, Mpfr()}, {exact.im, exact.im_magnitude, Mpfr()}};
    if (data.beta() == zero) return parts;
    const Mpfr br(data.beta().real()), bi(data.beta().imag()), cr(old.real()), ci(old.imag());
    parts[0].old = magnitude(br * cr) + magnitude(bi * ci);
    parts[1].old = magnitude(br * ci) + magnitude(bi * cr);
    for (Part& part : parts) part.products -= part.old;
    return parts;
  } else {
    const auto value = [](const T& x) {
      if constexpr (std::is_same_v<T, DoubleDouble>) {
        return exact_value(x);
      } else {
        return Mpfr(x);
      }
    };
    Part part;
    for (std::int64_t p = 0; p < data.test().k; ++p) {
      const Mpfr product = value(data.alpha()) * value(data.a(t)(i, p)) * value(data.b(t)(p, j));
      part.value += product;
      part.products += magnitude(product);
    }
    if (!(data.beta() == T(0))) {
      part.old = magnitude(value(data.beta()) * value(old));
      part.value += value(data.beta()) * value(old);
    }
    EXPECT_TRUE(part.value.exact());
    return {part};
  }
}

// Expects x within the contract: (n + 8) units of |alpha| |A||B| + |beta C|, where n is the number of real
// products, plus the smallest subnormal. A result that is not finite passes if alpha AB or beta C alone
// nearly overflows.
template <class T>
void expect_kept(const Mpfr& x, double rounded, const Part& exact, std::int64_t products,
                 const std::string& where) {
  const double max = largest_of<T>();
  const Mpfr allowed = Mpfr(static_cast<double>(products + 8) * unit_of<T>()) * (exact.products + exact.old) +
                       Mpfr(smallest_of<T>());
  const bool cancels = exact.products.to_double() > max / 4 && exact.old.sign() != 0;
  const bool old_cancels = exact.old.to_double() > max / 4;
  if (!std::isfinite(rounded)) {
    const Mpfr beyond = magnitude(exact.value) + allowed - Mpfr(max);
    EXPECT_TRUE(cancels || old_cancels || beyond.sign() > 0)
        << where << ": " << rounded << " for " << exact.value.to_double();
    return;
  }
  EXPECT_LE((magnitude(exact.value - x) - allowed).sign(), 0)
      << where << ": " << rounded << " for " << exact.value.to_double();
}

template <class T>
void expect_kept(GemmDataOf<T>& data, const std::vector<T>& before, const std::string& where) {
  const GemmCase& test = data.test();
  for (std::int64_t t = 0, e = 0; t < test.batch; ++t) {
    for (std::int64_t j = 0; j < test.n; ++j) {
      for (std::int64_t i = 0; i < test.m; ++i, ++e) {
        const auto exact = exact_element(data, before[static_cast<std::size_t>(e)], i, j, t);
        const T c = data.c(t)(i, j);
        const std::string element = where + " element " + std::to_string(i) + ", " + std::to_string(j);
        if constexpr (core::is_complex<T>) {
          expect_kept<T>(Mpfr(c.real()), c.real(), exact[0], 2 * test.k, element + " re");
          expect_kept<T>(Mpfr(c.imag()), c.imag(), exact[1], 2 * test.k, element + " im");
        } else if constexpr (std::is_same_v<T, DoubleDouble>) {
          expect_kept<T>(std::isfinite(c.hi) ? exact_value(c) : Mpfr(), c.hi, exact[0], test.k, element);
        } else {
          expect_kept<T>(Mpfr(c), c, exact[0], test.k, element);
        }
      }
    }
  }
}

std::int64_t recomputed(const Handle& handle) { return handle.report().at("recomputed_elements"); }

class Underflow : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Engines, Underflow, testing::ValuesIn(engines()));

// Row 0 has too wide a range for every emulation, so the item is computed natively; there row 1 underflows
// and must be recomputed.
TEST_P(Underflow, RowsThatUnderflowNativelyAreRecomputed) {
  for (const double alpha : {1.0, 0x1p100}) {
    GemmCase test{.m = 2, .n = 1, .k = 1024, .alpha = alpha, .engine = GetParam(), .policy = "emulate"};
    GemmDataOf<float> data(test);
    for (std::int64_t p = 0; p < test.k; ++p) {
      data.a()(0, p) = 1;
      data.a()(1, p) = data.b()(p, 0) = 0x1p-75F;
    }
    data.a()(0, 0) = 0x1p-120F;
    const Handle handle;
    data.run_well(handle);
    EXPECT_EQ(candidates(handle.report()), std::vector<std::string>{"native"});
    EXPECT_EQ(data.c()(1, 0), static_cast<float>(alpha * 0x1p-140));
    EXPECT_NEAR(data.c()(0, 0) / (alpha * 0x1p-75), 1023, 1e-3);
    EXPECT_EQ(recomputed(handle), 1);
  }
}

TEST_P(Underflow, SumsOfManySubnormalProductsAreRight) {
  GemmDataOf<double> data(GemmCase{.m = 3, .n = 2, .k = 1024, .engine = GetParam()});
  for (std::int64_t p = 0; p < 1024; ++p) {
    for (std::int64_t i = 0; i < 3; ++i) data.a()(i, p) = 0x1p-537;
    for (std::int64_t j = 0; j < 2; ++j) data.b()(p, j) = 0x1p-538;
  }
  data.run_well();
  for (const double x : data.result()) EXPECT_EQ(x, 0x1p-1065);
}

TEST_P(Underflow, LowWordsOfDoubleDoubleProductsAreKept) {
  GemmDataOf<DoubleDouble> data(GemmCase{.alpha = 0x1p600, .engine = GetParam()});
  data.a()(0, 0) = 0x1.123456789abcdp-505;
  data.b()(0, 0) = 0x1.fedcba9876543p-505;
  const PairReference exact(data);
  data.run_well();
  EXPECT_LE(ratio(exact_value(data.c()(0, 0)) - exact.values[0], exact.magnitudes[0]), 9 * 0x1p-104);
}

TEST_P(Underflow, OverflowingSumsTimesASmallAlphaAreFinite) {
  for (const double beta : {0.0, 0.5}) {
    GemmDataOf<float> data(
        GemmCase{.m = 3, .n = 3, .k = 4, .alpha = 0x1p-30, .beta = beta, .engine = GetParam()});
    for (std::int64_t p = 0; p < 4; ++p) {
      for (std::int64_t i = 0; i < 3; ++i) data.a()(i, p) = data.b()(p, i) = i == 1 ? 0x1p70F : 1;
    }
    const auto before = data.result();
    data.run_well();
    expect_kept(data, before, "beta " + std::to_string(beta));
    EXPECT_FLOAT_EQ(data.c()(1, 1), 0x1p112F);
  }
}

// Elements that are zero because of zero rows, sparse operands or cancellation are not recomputed.
TEST_P(Underflow, ElementsThatAreExactlyZeroAreNotRecomputed) {
  for (const std::string policy : {"native", "emulate"}) {
    GemmCase test{
        .m = 70, .n = 150, .k = 60, .distribution = "integer:3", .engine = GetParam(), .policy = policy};
    test.beta = policy == "native" ? 1 : 0;
    GemmDataOf<float> data(test);
    for (std::int64_t p = 0; p < 60; ++p) data.a()(3, p) = data.b()(p, 7) = 0;
    for (std::int64_t i = 0; i < 70; ++i) data.c()(i, 9) = 0;
    const auto before = data.result();
    const Handle handle;
    data.run_well(handle);
    EXPECT_EQ(recomputed(handle), 0);
    EXPECT_EQ(data.c()(3, 5), test.beta == 0 ? 0 : before[3 + 5 * 70]);
  }
}

// Draws a number of magnitude 2^low ... 2^(high + 1) and either sign, or zero.
template <class Real>
Real draw_real(std::mt19937_64& random, int low, int high) {
  if (random() % 8 == 0) return 0;
  const int exponent = low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  const double fraction = 1 + static_cast<double>(random() >> 12) * 0x1p-52;
  return static_cast<Real>((random() % 2 == 0 ? 1 : -1) * std::ldexp(fraction, exponent));
}

// Fills a matrix whose exponents lie around one centre; some rows have another centre, some cover all
// exponents.
template <class T>
void fill_extremes(std::mt19937_64& random, const MatrixView<T>& view, int reach) {
  using Real = core::RealOf<T>;
  const int centre = static_cast<int>(random() % 7) * reach / 3 - reach;
  for (std::int64_t i = 0; i < view.rows; ++i) {
    const int vector_centre = random() % 4 == 0 ? static_cast<int>(random() % 7) * reach / 3 - reach : centre;
    const int width = random() % 5 == 0 ? reach : 3;
    const int low = std::max(vector_centre - width, -reach - 22);
    const int high = std::min(vector_centre + width, reach - 3);
    for (std::int64_t p = 0; p < view.columns; ++p) {
      if constexpr (core::is_complex<T>) {
        view(i, p) = {draw_real<Real>(random, low, high), draw_real<Real>(random, low, high)};
      } else if constexpr (std::is_same_v<T, DoubleDouble>) {
        const double hi = draw_real<double>(random, low, high);
        view(i, p) = {hi, hi * 0x1p-54 * (static_cast<double>(random() >> 12) * 0x1p-52)};
      } else {
        view(i, p) = draw_real<Real>(random, low, high);
      }
    }
  }
}

template <class T>
class UnderflowOf : public testing::Test {};
using UnderflowElements =
    testing::Types<float, double, std::complex<float>, std::complex<double>, DoubleDouble>;
TYPED_TEST_SUITE(UnderflowOf, UnderflowElements);

template <class T>
GemmCase draw_extreme_case(std::mt19937_64& random, int trial, int reach) {
  constexpr unsigned distinct_ops = std::is_same_v<T, core::RealOf<T>> ? 2 : 3;
  GemmCase test{.m = static_cast<std::int64_t>(1 + random() % 12),
                .n = static_cast<std::int64_t>(1 + random() % 12)};
  if (trial % 8 == 0) test.m = 1 + trial % 3, test.n = static_cast<std::int64_t>(1 + random() % 300);
  if (trial % 16 == 0) std::swap(test.m, test.n);
  test.k = static_cast<std::int64_t>(1 + random() % 30);
  test.op_a = ops[random() % distinct_ops];
  test.op_b = ops[random() % distinct_ops];
  test.layout = layouts[random() % 2];
  test.pad_a = static_cast<std::int64_t>(random() % 3);
  test.pad_c = static_cast<std::int64_t>(random() % 2);
  const double scalars[] = {1, 1, -1, 0.7, -3, std::ldexp(1.3, -reach / 2), std::ldexp(-1.1, reach / 2)};
  test.alpha = scalars[random() % 7];
  test.beta = random() % 2 == 0 ? 0 : scalars[random() % 7];
  if (core::is_complex<T> && random() % 2 == 0) {
    test.alpha_im = scalars[random() % 7];
    test.beta_im = test.beta == 0 ? 0 : scalars[random() % 7];
  }
  const auto names = engines();
  test.engine = names[random() % names.size()];
  test.policy = random() % 2 == 0 ? "auto" : "emulate";
  test.threads = 1 + trial % 2;
  return test;
}

TYPED_TEST(UnderflowOf, ContractsHoldForAnyExponents) {
  using T = TypeParam;
  constexpr int reach = std::is_same_v<core::RealOf<T>, float> ? 127 : 1023;
  std::mt19937_64 random(2026);
  std::int64_t elements_recomputed = 0;
  for (int trial = 0; trial < (thorough ? 160 : 40); ++trial) {
    const GemmCase test = draw_extreme_case<T>(random, trial, reach);
    GemmDataOf<T> data(test);
    fill_extremes(random, data.a(), reach);
    fill_extremes(random, data.b().transposed(), reach);
    if (!(data.beta() == T(0))) fill_extremes(random, data.c(), reach);
    const auto before = data.result();
    const Handle handle;
    data.run_well(handle);
    elements_recomputed += recomputed(handle);
    expect_kept(data, before,
                "trial " + std::to_string(trial) + " " + test.engine + " " + test.policy + " alpha " +
                    std::to_string(test.alpha) + " beta " + std::to_string(test.beta));
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_TRUE((std::is_same_v<T, DoubleDouble>) || elements_recomputed > 25) << elements_recomputed;
}

}  // namespace
}  // namespace kintsugi::test
