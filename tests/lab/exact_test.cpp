// ExactSum and the elements of C against MPFR at a precision that holds them exactly.
#include "lab/reference/exact.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "lab/random.hpp"
#include "mpfr_value.hpp"

namespace kintsugi::lab {
namespace {

using testing::Mpfr;
using testing::power_of_two;

constexpr double double_max = std::numeric_limits<double>::max();
constexpr double double_tiny = std::numeric_limits<double>::denorm_min();
constexpr float float_max = std::numeric_limits<float>::max();
constexpr float float_tiny = std::numeric_limits<float>::denorm_min();
constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

// Every finite bit pattern alike: the whole range of exponents, subnormals among them.
double any_double(Random& random) {
  for (;;) {
    const double x = std::bit_cast<double>(random.bits());
    if (std::isfinite(x)) return x;
  }
}

float any_float(Random& random) {
  for (;;) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()));
    if (std::isfinite(x)) return x;
  }
}

// Its precision is set so that the value is exact.
void to_mpfr(const ExactSum& sum, mpfr_t result) {
  const ExactSum::Magnitude parts = sum.magnitude();
  if (!sum.is_finite() || parts.last < parts.first) {
    mpfr_set_prec(result, 53);
    mpfr_set_d(result, sum.to_double(), MPFR_RNDN);
    return;
  }
  mpz_t integer;
  mpz_init(integer);
  const auto count = static_cast<std::size_t>(parts.last - parts.first + 1);
  mpz_import(integer, count, -1, sizeof(std::uint32_t), 0, 0, parts.digit.data() + parts.first);
  if (parts.negative) mpz_neg(integer, integer);
  mpfr_set_prec(result, static_cast<mpfr_prec_t>(count) * ExactSum::digit_bits);
  mpfr_set_z_2exp(result, integer, parts.first * ExactSum::digit_bits - ExactSum::one_position, MPFR_RNDN);
  mpz_clear(integer);
}

// Value, sign and both roundings agree.
::testing::AssertionResult same(const ExactSum& sum, const Mpfr& expected) {
  if (!expected.exact()) return ::testing::AssertionFailure() << "the reference was rounded";
  mpfr_t value;
  mpfr_init(value);
  to_mpfr(sum, value);
  const bool equal = mpfr_equal_p(value, expected.get()) != 0;
  mpfr_clear(value);
  if (!equal)
    return ::testing::AssertionFailure() << "exact values differ; MPFR has " << expected.to_double();
  if (sum.to_double() != expected.to_double()) {
    return ::testing::AssertionFailure() << "double " << sum.to_double() << ", MPFR " << expected.to_double();
  }
  if (sum.to_float() != expected.to_float()) {
    return ::testing::AssertionFailure() << "float " << sum.to_float() << ", MPFR " << expected.to_float();
  }
  const int sign = expected.sign() > 0 ? 1 : expected.sign() < 0 ? -1 : 0;
  if (sum.sign() != sign || sum.is_zero() != (sign == 0)) return ::testing::AssertionFailure() << "sign";
  if (sign != 0) {
    const Scaled scaled = sum.to_scaled();
    if (sum.exponent() != mpfr_get_exp(expected.get()) - 1)
      return ::testing::AssertionFailure() << "exponent";
    long exponent = 0;
    const double fraction = mpfr_get_d_2exp(&exponent, expected.get(), MPFR_RNDN);
    if (scaled.fraction != fraction || scaled.exponent != exponent)
      return ::testing::AssertionFailure() << "scaled";
  }
  return ::testing::AssertionSuccess();
}

TEST(ExactSum, ProductsOfDoublesOfTheWholeRange) {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    ExactSum sum;
    Mpfr expected;
    for (int l = 0; l < 20; ++l) {
      const double a = any_double(random);
      const double b = any_double(random);
      sum.add_product(a, b);
      expected += Mpfr(a) * Mpfr(b);
      ASSERT_TRUE(same(sum, expected)) << "trial " << trial << ", product " << l;
    }
  }
}

TEST(ExactSum, ProductsOfFloatsOfTheWholeRange) {
  Random random(2);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<float> a(40), b(40);
    ExactSum one_by_one;
    Mpfr expected;
    for (std::size_t l = 0; l < a.size(); ++l) {
      a[l] = l % 7 == 3 ? 0 : any_float(random);
      b[l] = any_float(random);
      one_by_one.add_product(a[l], b[l]);
      expected += Mpfr(a[l]) * Mpfr(b[l]);
    }
    ExactSum together;
    together.add_products(a.data(), b.data(), 40);
    ASSERT_TRUE(same(one_by_one, expected)) << trial;
    ASSERT_TRUE(same(together, expected)) << trial;
  }
}

TEST(ExactSum, ExtremeProducts) {
  const double doubles[] = {double_max, -double_max, double_tiny, -double_tiny, 0x1p-1022, 1, -1};
  for (const double a : doubles) {
    for (const double b : doubles) {
      ExactSum sum;
      sum.add_product(a, b);
      ASSERT_TRUE(same(sum, Mpfr(a) * Mpfr(b))) << a << " * " << b;
      sum.add_product(double_tiny, double_tiny);  // the last bit there is
      ASSERT_TRUE(same(sum, Mpfr(a) * Mpfr(b) + Mpfr(double_tiny) * Mpfr(double_tiny)));
    }
  }
  const float floats[] = {float_max, -float_max, float_tiny, -float_tiny, 1};
  for (const float a : floats) {
    for (const float b : floats) {
      ExactSum sum;
      sum.add_products(&a, &b, 1);
      ASSERT_TRUE(same(sum, Mpfr(a) * Mpfr(b))) << a << " * " << b;
    }
  }
}

TEST(ExactSum, CancellationDownToTheLastBit) {
  Random random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> a, b;
    ExactSum sum;
    for (int l = 0; l < 30; ++l) {
      a.push_back(any_double(random));
      b.push_back(any_double(random));
      sum.add_product(a.back(), b.back());
    }
    sum.add_product(double_tiny, -double_tiny);
    for (std::size_t l = a.size(); l-- > 0;) sum.add_product(-a[l], b[l]);
    ASSERT_TRUE(same(sum, Mpfr(double_tiny) * Mpfr(-double_tiny))) << trial;
    sum.add_product(double_tiny, double_tiny);
    ASSERT_TRUE(sum.is_zero());
    ASSERT_EQ(std::bit_cast<std::uint64_t>(sum.to_double()), 0U);
  }
}

TEST(ExactSum, SumsOfSumsAndOfIntegers) {
  Random random(8);
  for (int trial = 0; trial < 200; ++trial) {
    ExactSum sum, other;
    Mpfr expected;
    for (int l = 0; l < 12; ++l) {
      const double a = any_double(random);
      const double b = any_double(random);
      (l % 2 == 0 ? sum : other).add_product(a, b);
      expected += Mpfr(a) * Mpfr(b);
      const std::uint64_t integer = random.bits() >> (random.bits() % 64);
      const int exponent = static_cast<int>(random.bits() % 5000) - 2500;
      other.add_integer(integer, exponent, l % 3 == 0);
      const Mpfr high(std::ldexp(static_cast<double>(integer >> 32), 32)),
          low(static_cast<double>(integer & 0xffffffffU));
      const Mpfr term = (high + low) * power_of_two(exponent);
      l % 3 == 0 ? expected -= term : expected += term;
    }
    sum.add(other);
    ASSERT_TRUE(same(sum, expected)) << trial;
  }
  ExactSum lowest;  // zeros below the last bit may stand there
  lowest.add_integer(std::uint64_t{3} << 40, -ExactSum::one_position - 40, false);
  ASSERT_TRUE(same(lowest, Mpfr(3) * power_of_two(-ExactSum::one_position)));
  ExactSum nothing;
  nothing.add(ExactSum());
  nothing.add_integer(0, 0, true);
  EXPECT_TRUE(nothing.is_zero());
  ExactSum infinite;
  infinite.add(std::numeric_limits<double>::infinity());
  nothing.add(infinite);
  EXPECT_FALSE(nothing.is_finite());
}

// Lazy carries: more additions than a digit has room for, in both directions and through zero.
TEST(ExactSum, CarriesOfManyAdditions) {
  const std::int64_t count = 200'000;
  const std::vector<float> a(count, float_max);
  const std::vector<float> b(count, -std::nextafter(1.0F, 2.0F));
  ExactSum sum;
  for (int round = 1; round <= 4; ++round) {
    sum.add_products(a.data(), b.data(), count);
    ASSERT_TRUE(same(sum, Mpfr(float_max) * Mpfr(b[0]) * Mpfr(static_cast<double>(round * count))));
  }
  for (int round = 3; round >= -2; --round) {
    ExactSum minus;
    minus.add_products(a.data(), b.data(), count);
    sum.negate();
    sum.add_products(a.data(), b.data(), count);
    sum.negate();
    ASSERT_TRUE(same(sum, Mpfr(float_max) * Mpfr(b[0]) * Mpfr(static_cast<double>(round * count)))) << round;
  }
}

TEST(ExactSum, MixedFloatsAndDoubles) {
  Random random(4);
  ExactSum sum;
  Mpfr expected;
  std::vector<float> a(1000), b(1000);
  for (int round = 0; round < 60; ++round) {
    for (std::size_t l = 0; l < a.size(); ++l) {
      a[l] = static_cast<float>(random.symmetric());
      b[l] = static_cast<float>(random.symmetric());
      expected += Mpfr(a[l]) * Mpfr(b[l]);
    }
    sum.add_products(a.data(), b.data(), 1000);
    const double x = any_double(random);
    sum.add(x);
    expected += Mpfr(x);
    ASSERT_TRUE(same(sum, expected)) << round;
  }
}

// A tie between two neighbours, and the same tie moved by as little as 2^-200 or 2^-2148.
TEST(ExactSum, TiesOfDouble) {
  Random random(5);
  for (int trial = 0; trial < 500; ++trial) {
    const double low = std::fabs(any_double(random));
    const double high = std::nextafter(low, infinity);
    for (const double nudge : {0.0, 0x1p-200, -0x1p-200, double_tiny, -double_tiny}) {
      ExactSum sum;
      sum.add_product(low, 0.5);
      sum.add_product(std::isinf(high) ? 0 : high, 0.5);
      sum.add_product(nudge, double_tiny);
      Mpfr expected = Mpfr(low) * Mpfr(0.5) + Mpfr(std::isinf(high) ? 0 : high) * Mpfr(0.5);
      expected += Mpfr(nudge) * Mpfr(double_tiny);
      ASSERT_TRUE(same(sum, expected)) << low << " nudged by " << nudge;
      sum.negate();
      ASSERT_EQ(sum.to_double(), -expected.to_double());
    }
  }
}

// Rounding first to double would end on the wrong side of these.
TEST(ExactSum, TiesOfFloatAreRoundedOnce) {
  Random random(6);
  int twice_differs = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const float low = std::fabs(any_float(random));
    const float high = std::nextafter(low, std::numeric_limits<float>::infinity());
    if (std::isinf(high)) continue;
    for (const double nudge : {0.0, 0x1p-200, -0x1p-200, double_tiny, -double_tiny}) {
      ExactSum sum;
      sum.add_product(static_cast<double>(low), 0.5);
      sum.add_product(static_cast<double>(high), 0.5);
      sum.add(nudge);
      ASSERT_TRUE(same(sum, Mpfr(low) * Mpfr(0.5) + Mpfr(high) * Mpfr(0.5) + Mpfr(nudge)))
          << low << " " << nudge;
      if (static_cast<float>(sum.to_double()) != sum.to_float()) ++twice_differs;
    }
  }
  EXPECT_GT(twice_differs, 500);  // so the cases do tell the two apart
}

TEST(ExactSum, EdgeOfOverflow) {
  // DBL_MAX + half a unit in its last place is the tie with 2^1024; anything less stays finite.
  const double half_unit = 0x1p970;
  for (const double nudge : {-double_tiny, 0.0, double_tiny}) {
    ExactSum sum;
    sum.add(double_max);
    sum.add(half_unit);
    sum.add(nudge);
    EXPECT_EQ(sum.to_double(), nudge < 0 ? double_max : infinity);
    sum.negate();
    EXPECT_EQ(sum.to_double(), nudge < 0 ? -double_max : -infinity);
  }
  for (const double nudge : {-double_tiny, 0.0, double_tiny}) {
    ExactSum sum;
    sum.add(float_max);
    sum.add(0x1p103);
    sum.add(nudge);
    EXPECT_EQ(sum.to_float(), nudge < 0 ? float_max : std::numeric_limits<float>::infinity());
  }
  ExactSum cancels;  // 2e308 - 2e308: exact 0 (FACTS section 8)
  cancels.add_product(1e308, 2.0);
  cancels.add_product(1e308, -2.0);
  EXPECT_TRUE(cancels.is_zero());
}

TEST(ExactSum, SubnormalMidpoints) {
  for (const int odd : {1, 3, 5, 7}) {
    for (const double nudge : {-1.0, 0.0, 1.0}) {
      ExactSum sum;
      sum.add_product(odd * double_tiny, 0.5);
      sum.add_product(nudge * double_tiny, double_tiny);
      Mpfr expected = Mpfr(odd * double_tiny) * Mpfr(0.5) + Mpfr(nudge * double_tiny) * Mpfr(double_tiny);
      ASSERT_TRUE(same(sum, expected)) << odd << " " << nudge;
      ExactSum single;
      single.add(odd * 0x1p-150);
      single.add_product(nudge, double_tiny);
      ASSERT_TRUE(same(single, Mpfr(odd * 0x1p-150) + Mpfr(nudge * double_tiny))) << odd << " " << nudge;
    }
  }
}

TEST(ExactSum, MultipliedExactly) {
  Random random(7);
  const double factors[] = {double_max, -double_tiny, 0.1, -1, 3, 0x1p-1022, 0};
  for (int trial = 0; trial < 200; ++trial) {
    ExactSum sum;
    Mpfr expected;
    for (int l = 0; l < 5; ++l) {
      const double a = trial % 5 == 0 ? double_tiny : any_double(random);
      const double b = trial % 5 == 0 ? double_tiny : trial % 5 == 1 ? double_max : any_double(random);
      sum.add_product(a, b);
      expected += Mpfr(a) * Mpfr(b);
    }
    const double factor = trial < 70 ? factors[trial % 7] : any_double(random);
    sum.multiply(factor);
    ASSERT_TRUE(same(sum, expected * Mpfr(factor))) << trial;
  }
}

TEST(ExactSum, ClearedSumIsNew) {
  ExactSum sum;
  sum.add_product(double_max, double_max);
  sum.add_product(double_tiny, double_tiny);
  sum.add(infinity);
  sum.clear();
  EXPECT_TRUE(sum.is_zero());
  sum.add(-3);
  EXPECT_TRUE(same(sum, Mpfr(-3)));
}

TEST(ExactSum, SpecialValues) {
  const auto sum_of = [](std::initializer_list<std::pair<double, double>> products) {
    ExactSum sum;
    for (const auto& [a, b] : products) sum.add_product(a, b);
    return sum.to_double();
  };
  EXPECT_TRUE(std::isnan(sum_of({{nan, 0}, {1, 1}})));
  EXPECT_TRUE(std::isnan(sum_of({{infinity, 0}})));
  EXPECT_TRUE(std::isnan(sum_of({{infinity, 1}, {infinity, -1}})));
  EXPECT_EQ(sum_of({{infinity, 2}, {double_max, -double_max}}), infinity);
  EXPECT_EQ(sum_of({{1, -infinity}}), -infinity);
  const float a[] = {1, std::numeric_limits<float>::infinity(), 2};
  const float b[] = {1, -1, 2};
  ExactSum floats;
  floats.add_products(a, b, 3);
  EXPECT_EQ(floats.to_float(), -std::numeric_limits<float>::infinity());
  EXPECT_FALSE(floats.is_finite());
  EXPECT_FALSE(floats.is_zero());
  EXPECT_EQ(floats.sign(), -1);
  floats.multiply(0);
  EXPECT_TRUE(std::isnan(floats.to_double()));
}

// The comparison itself sees a wrong bit.
TEST(ExactSum, TheComparisonSeesAFault) {
  ExactSum sum;
  sum.add(1);
  EXPECT_TRUE(same(sum, Mpfr(1)));
  EXPECT_FALSE(same(sum, Mpfr(1) + Mpfr(double_tiny) * Mpfr(double_tiny)));
  EXPECT_FALSE(same(sum, Mpfr(-1)));
}

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
    Mpfr most = bound * Mpfr(1 + std::ldexp(static_cast<double>(k + 8), -52));
    EXPECT_LE((Mpfr(got) - most - Mpfr(2 * double_tiny)).sign(), 0) << got << " " << bound.to_double();
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

TEST(ExactElement, UnreadOperandsMayBeMissing) {
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

TEST(ExactElement, StridesAndCorrectlyRoundedProduct) {
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
}  // namespace kintsugi::lab
