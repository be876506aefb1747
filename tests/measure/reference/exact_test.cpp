// Compares exact elements of C with MPFR.
#include "tools/measure/reference/exact.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "exact_sum_reference.hpp"

namespace kintsugi::measure {
namespace {

template <class T>
void expect_element(const std::vector<T>& a, const std::vector<T>& b, double alpha, double beta, double c0) {
  const auto k = static_cast<std::int64_t>(a.size());
  Mpfr dot, absolute;
  for (std::size_t l = 0; l < a.size(); ++l) {
    dot += Mpfr(a[l]) * Mpfr(b[l]);
    absolute += magnitude(Mpfr(a[l]) * Mpfr(b[l]));
  }
  const Mpfr exact = Mpfr(alpha) * dot + Mpfr(beta) * Mpfr(c0);
  const Mpfr bound = magnitude(Mpfr(alpha)) * absolute + magnitude(Mpfr(beta) * Mpfr(c0));
  ASSERT_TRUE(exact.exact() && bound.exact());
  const ElementReference<T> reference(a.data(), b.data(), k, alpha, beta, c0);
  EXPECT_EQ(reference.element().value, exact.to_double());
  EXPECT_TRUE(same(reference.sum(), exact));
  const double got = reference.element().absolute;
  if (std::isfinite(got)) {
    EXPECT_GE((Mpfr(got) - bound).sign(), 0);
    Mpfr largest = bound * Mpfr(1 + std::ldexp(static_cast<double>(k + 8), -52));
    EXPECT_LE((Mpfr(got) - largest - Mpfr(2 * double_tiny)).sign(), 0) << got << " " << bound.to_double();
  } else {
    EXPECT_EQ(bound.to_double(), infinity);
  }
  const T computed = static_cast<T>(exact.to_double() * (1 + 1e-5));
  if (std::isfinite(computed)) {
    EXPECT_EQ(reference.error_of(computed).to_double(), (Mpfr(computed) - exact).to_double());
  }
}

TEST(ExactElement, AgreesWithMpfr) {
  Random random(8);
  const double alphas[] = {1, -1, 0.7, 0, 0x1p-1000, 1e300};
  const double betas[] = {0, 1, -0.3, 1e-300};
  for (int trial = 0; trial < 400; ++trial) {
    const auto k = static_cast<std::size_t>(random.integer(0, 40));
    std::vector<float> a32(k), b32(k);
    std::vector<double> a64(k), b64(k);
    for (std::size_t l = 0; l < k; ++l) {
      a32[l] = trial % 2 == 0 ? any_float(random) : static_cast<float>(random.symmetric());
      b32[l] = trial % 2 == 0 ? any_float(random) : static_cast<float>(random.symmetric());
      a64[l] =
          trial % 2 == 0 ? any_double(random) : std::ldexp(random.symmetric(), trial % 3 == 0 ? -530 : 0);
      b64[l] =
          trial % 2 == 0 ? any_double(random) : std::ldexp(random.symmetric(), trial % 3 == 0 ? -530 : 0);
    }
    const double alpha = alphas[trial % 6];
    const double beta = betas[trial / 6 % 4];
    expect_element(a32, b32, alpha, beta, random.symmetric());
    expect_element(a64, b64, alpha, beta, random.symmetric());
  }
}

TEST(ExactElement, OperandsAreNotReadIfAlphaIsZero) {
  double c0 = 3;
  Product<double> product;
  product.a = {nullptr, 1, 5, 5, 1};
  product.b = {nullptr, 5, 1, 1, 1};
  product.alpha = 0;
  product.beta = 2;
  product.c0 = {&c0, 1, 1, 1, 1};
  EXPECT_EQ(exact_element(product, 0, 0).value, 6);
  EXPECT_EQ(exact_element(product, 0, 0).absolute >= 6, true);
  EXPECT_EQ(exact_error(product, 0, 0, 6.5), 0.5);
}

TEST(ExactElement, ReadsStridedViewsAndRoundsOnce) {
  // A is 2 x 3 stored by columns with padding, B 3 x 2 stored by rows.
  const float a[] = {1, 2, -9, 3, 4, -9, 5, 6, -9};
  const float b[] = {1, 0x1p-30F, 0, 1, 1, 1};
  Product<float> product{{a, 2, 3, 1, 3}, {b, 3, 2, 2, 1}};
  float c[4] = {};
  exact_product<float>(product, {c, 2, 2, 2, 1}, 2);
  EXPECT_EQ(c[0], 6);
  EXPECT_EQ(c[1], 8);  // 8 + 2^-30
  EXPECT_EQ(c[2], 8);
  EXPECT_EQ(c[3], 10);
  EXPECT_EQ(exact_error(product, 0, 1, c[1]), -0x1p-30);
  EXPECT_EQ(exact_element(product, 0, 1).value, 8 + 0x1p-30);
}

}  // namespace
}  // namespace kintsugi::measure
