// The contract `exact` in the four rounding modes of IEEE 754, judged by MPFR: values, overflow, underflow
// and signs of zeros. Also other accuracies in these modes, and exceptions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cfenv>
#include <limits>
#include <random>
#include <vector>

#include "base/rounding.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/complex_reference.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

using core::RealOf;

struct Mode {
  int environment;
  mpfr_rnd_t mpfr;
  const char* name;  // value of the setting
};
constexpr Mode modes[] = {{FE_TONEAREST, MPFR_RNDN, "nearest"},
                          {FE_DOWNWARD, MPFR_RNDD, "down"},
                          {FE_UPWARD, MPFR_RNDU, "up"},
                          {FE_TOWARDZERO, MPFR_RNDZ, "zero"}};

// The calling thread's rounding mode during the object's lifetime.
class InMode {
 public:
  explicit InMode(int mode) { std::fesetround(mode); }
  ~InMode() { std::fesetround(FE_TONEAREST); }
  InMode(const InMode&) = delete;
  InMode& operator=(const InMode&) = delete;
};

// A sum of products, exactly, and whether all of them are +0.
struct Terms {
  Mpfr sum;
  bool positive_zeros = true;

  void add(double x, double y, double z = 1) {
    sum += Mpfr(x) * Mpfr(y) * Mpfr(z);
    const bool is_zero = x == 0 || y == 0 || z == 0;
    const bool is_negative = (std::signbit(x) != std::signbit(y)) != std::signbit(z);
    positive_zeros = positive_zeros && is_zero && !is_negative;
  }
  template <class T>
  T rounded(const Mode& mode) const {
    if (sum.sign() == 0) return mode.environment == FE_DOWNWARD && !positive_zeros ? -T(0) : T(0);
    if constexpr (std::is_same_v<T, float>)
      return mpfr_get_flt(sum.get(), mode.mpfr);
    else
      return mpfr_get_d(sum.get(), mode.mpfr);
  }
};

template <class T>
T expected_element(GemmDataOf<T>& data, T old, std::int64_t i, std::int64_t j, const Mode& mode) {
  const std::int64_t k = data.test().k;
  if constexpr (core::is_complex<T>) {
    Terms re, im;
    const auto add = [&](T factor, T x,
                         double sign) {  // factor x, of which the imaginary part is left out if 0
      re.add(factor.real(), x.real(), sign);
      im.add(factor.real(), x.imag(), sign);
      if (factor.imag() == 0) return;
      re.add(factor.imag(), x.imag(), -sign);
      im.add(factor.imag(), x.real(), sign);
    };
    // alpha (a b): the products of the parts of a and b are terms of their own.
    for (std::int64_t p = 0; p < k; ++p) {
      const T a = a_element(data, i, p);
      const T b = b_element(data, p, j);
      const auto add_products = [&](double factor, Terms& of_real, Terms& of_imaginary, double sign) {
        of_real.add(factor, a.real(), b.real());
        of_real.add(factor, a.imag(), -b.imag());
        of_imaginary.add(sign * factor, a.real(), b.imag());
        of_imaginary.add(sign * factor, a.imag(), b.real());
      };
      add_products(data.alpha().real(), re, im, 1);
      if (data.alpha().imag() != 0) add_products(data.alpha().imag(), im, re, -1);
    }
    if (data.beta() != T(0)) add(data.beta(), old, 1);
    if (data.alpha().imag() != 0 || data.beta().imag() != 0) re.positive_zeros = im.positive_zeros = false;
    return {re.template rounded<RealOf<T>>(mode), im.template rounded<RealOf<T>>(mode)};
  } else {
    Terms terms;
    for (std::int64_t p = 0; p < k; ++p) terms.add(data.alpha(), data.a()(i, p), data.b()(p, j));
    if (data.beta() != T(0)) terms.add(data.beta(), old);
    return terms.template rounded<T>(mode);
  }
}

// Elements whose sums are exact, cancel, overflow, are tiny, or lie beside what is representable.
template <class T>
T drawn_real(std::mt19937& random, int kind) {
  using limits = std::numeric_limits<T>;
  const auto uniform = [&] { return static_cast<T>(std::ldexp(static_cast<double>(random()), -32) - 0.5); };
  const auto integer = [&](int bits) {
    return static_cast<T>(static_cast<int>(random() >> (32 - bits)) - (1 << (bits - 1)));
  };
  switch (kind) {
    case 0: return integer(4);
    case 1: return integer(20);
    case 2: return uniform();
    case 3: return std::ldexp(uniform(), static_cast<int>(random() % 120) - 60);
    case 4: return uniform() * limits::max();
    case 5: return uniform() * limits::min();
    case 6: return random() % 3 == 0 ? integer(3) : random() % 2 == 0 ? T(0) : -T(0);
    case 7: return random() % 2 == 0 ? T(1) : limits::epsilon() * (random() % 2 == 0 ? T(0.5) : T(-0.5));
    case 8: return random() % 8 == 0 ? -T(0) : T(0);
    default: return std::ldexp(T(1), static_cast<int>(random() % 200) - 100);
  }
}
template <class T>
T drawn(std::mt19937& random, int kind) {
  if constexpr (core::is_complex<T>) {
    const auto part = [&] { return drawn_real<RealOf<T>>(random, kind); };
    const auto re = part();
    return {re, part()};
  } else {
    return drawn_real<T>(random, kind);
  }
}

template <class T>
class RoundingModes : public testing::Test {
 protected:
  static GemmCase drawn_case(std::mt19937& random) {
    GemmCase test{.engine = random() % 4 == 0 ? "reference" : "cpu", .accuracy = "exact"};
    test.m = draw(random, random() % 8 == 0 ? 40 : 5);
    test.n = draw(random, random() % 8 == 0 ? 40 : 5);
    test.k = random() % 16 == 0 ? 0 : draw(random, random() % 8 == 0 ? 200 : 6);
    test.op_a = ops[random() % 3];
    test.op_b = ops[random() % 3];
    test.layout = layouts[random() % 2];
    test.pad_a = static_cast<std::int64_t>(random() % 3);
    test.pad_c = static_cast<std::int64_t>(random() % 3);
    const double scalars[] = {1, 1, 1, -1, 0.75, -3, 0x1p-300, 1e30, 0};
    test.alpha = scalars[random() % (std::is_same_v<RealOf<T>, float> ? 6 : 9)];
    test.beta = random() % 2 == 0 ? 0 : scalars[random() % (std::is_same_v<RealOf<T>, float> ? 6 : 9)];
    if (random() % 4 == 0) test.alpha_im = scalars[random() % 6];
    if (random() % 4 == 0) test.beta_im = scalars[random() % 6];
    test.threads = random() % 3 == 0 ? 2 : 1;
    return test;
  }
  static void fill(std::mt19937& random, const MatrixView<T>& matrix, int kind) {
    for (std::int64_t j = 0; j < matrix.columns; ++j) {
      for (std::int64_t i = 0; i < matrix.rows; ++i) matrix(i, j) = drawn<T>(random, kind);
    }
  }
};
using RoundedTypes = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(RoundingModes, RoundedTypes);

// Every case in all four modes: half of them by the thread's mode, the others by the setting.
TYPED_TEST(RoundingModes, ExactProductsAreMpfrsBits) {
  using T = TypeParam;
  std::mt19937 random(20261130);
  const Handle handle;
  const int cases = thorough ? 700 : 100;
  for (int t = 0; t < cases; ++t) {
    const GemmCase test = this->drawn_case(random);
    GemmDataOf<T> data(test);
    const int kind = static_cast<int>(random() % 10);
    this->fill(random, data.a(), kind);
    this->fill(random, data.b(), random() % 2 == 0 ? kind : static_cast<int>(random() % 10));
    if (data.beta() != T(0)) this->fill(random, data.c(), kind);
    const std::vector<T> start = data.raw_c();
    const bool by_setting = random() % 2 == 0;
    for (const Mode& mode : modes) {
      data.raw_c() = start;
      const std::vector<T> old = data.result();
      std::vector<T> expected;
      for (std::int64_t j = 0; j < test.n; ++j) {
        for (std::int64_t i = 0; i < test.m; ++i) {
          const T c = old[static_cast<std::size_t>(i + j * test.m)];
          const bool is_scaled = test.k == 0 || data.alpha() == T(0);
          expected.push_back(is_scaled && data.beta() == T(1) ? c
                             : is_scaled && data.beta() == T(0)
                                 ? T(0)
                                 : expected_element(data, data.beta() == T(0) ? T(0) : c, i, j, mode));
        }
      }
      ASSERT_EQ(kintsugi_set(handle, "rounding", by_setting ? mode.name : nullptr), KINTSUGI_SUCCESS);
      {
        const InMode in_mode(by_setting ? FE_TONEAREST : mode.environment);
        data.run_well(handle);
      }
      const std::vector<T> result = data.result();
      for (std::size_t e = 0; e < result.size(); ++e) {
        const bool is_scaled = test.k == 0 || data.alpha() == T(0);
        if (is_scaled ? result[e] == expected[e] : bits_of<T>({result[e]}) == bits_of<T>({expected[e]}))
          continue;
        FAIL() << "case " << t << ", " << mode.name << ", kind " << kind << ", engine " << test.engine
               << ", element " << e << " of " << test.m << " x " << test.n << ", k " << test.k << ", alpha "
               << data.alpha() << ", beta " << data.beta() << ": " << result[e] << " for " << expected[e];
      }
    }
  }
}

// Row and column whose sum overflows, or is smaller than the smallest subnormal number, or cancels.
TYPED_TEST(RoundingModes, LimitsAreRoundedAsIeee754Says) {
  using T = TypeParam;
  using Real = RealOf<T>;
  using limits = std::numeric_limits<Real>;
  const auto result_of = [](std::vector<Real> a, std::vector<Real> b, const char* rounding) {
    const Handle handle;
    EXPECT_EQ(kintsugi_set(handle, "rounding", rounding), KINTSUGI_SUCCESS);
    GemmDataOf<T> data({.k = std::ssize(a), .accuracy = "exact"});
    for (std::size_t p = 0; p < a.size(); ++p) {
      data.a()(0, static_cast<std::int64_t>(p)) = a[p];
      data.b()(static_cast<std::int64_t>(p), 0) = b[p];
    }
    data.run_well(handle);
    if constexpr (core::is_complex<T>)
      return data.c()(0, 0).real();
    else
      return data.c()(0, 0);
  };
  constexpr Real infinity = limits::infinity();
  constexpr Real most = limits::max();
  constexpr Real tiny = limits::denorm_min();
  EXPECT_EQ(result_of({most}, {2}, "up"), infinity);
  EXPECT_EQ(result_of({most}, {2}, "down"), most);
  EXPECT_EQ(result_of({most}, {2}, "zero"), most);
  EXPECT_EQ(result_of({most}, {-2}, "up"), -most);
  EXPECT_EQ(result_of({most}, {-2}, "down"), -infinity);
  EXPECT_EQ(result_of({most}, {-2}, "zero"), -most);
  EXPECT_EQ(result_of({tiny}, {tiny}, "up"), tiny);
  EXPECT_EQ(result_of({tiny}, {tiny}, "down"), 0);
  EXPECT_EQ(result_of({tiny}, {-tiny}, "down"), -tiny);
  EXPECT_TRUE(std::signbit(result_of({tiny}, {-tiny}, "up")));
  EXPECT_TRUE(std::signbit(result_of({tiny}, {-tiny}, "zero")));
  EXPECT_FALSE(std::signbit(result_of({1, 1}, {1, -1}, "up")));
  EXPECT_TRUE(std::signbit(result_of({1, 1}, {1, -1}, "down")));
  EXPECT_FALSE(std::signbit(result_of({1, 1}, {1, -1}, "nearest")));
}

TYPED_TEST(RoundingModes, OtherEmulationsRoundToNearestAlone) {
  using T = TypeParam;
  GemmDataOf<T> emulated({.m = 8, .n = 8, .k = 8, .policy = "emulate"});
  GemmDataOf<T> reproducible({.m = 8, .n = 8, .k = 8, .accuracy = "reproducible"});
  const Handle handle;
  reproducible.run_well(handle);
  const std::vector<T> to_nearest = reproducible.result();
  {
    const InMode up(FE_UPWARD);
    EXPECT_EQ(emulated.run(handle), KINTSUGI_NOT_SUPPORTED);
    EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("rounding mode is up"));
    EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("rounding = nearest"));
    reproducible.run_well(handle);
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    ASSERT_EQ(kintsugi_set(handle, "rounding", "nearest"), KINTSUGI_SUCCESS);
    emulated.run_well(handle);
  }
  EXPECT_EQ(bits_of(reproducible.result()), bits_of(to_nearest));
  ASSERT_EQ(kintsugi_set(handle, "rounding", "up"), KINTSUGI_SUCCESS);
  EXPECT_EQ(emulated.run(handle), KINTSUGI_NOT_SUPPORTED);
  EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("rounding = \"up\""));
  EXPECT_EQ(reproducible.run(handle), KINTSUGI_NOT_SUPPORTED);
  ASSERT_EQ(kintsugi_set(handle, "rounding", "sideways"), KINTSUGI_BAD_SETTING);
}

// 1 + 2^-60 as a product of k = 2: a native product rounds each addition in the thread's mode.
TEST(RoundingOfNative, HasTheThreadsMode) {
  for (const Mode& mode : modes) {
    GemmDataOf<double> data({.m = 3, .n = 3, .k = 2, .policy = "native", .threads = 1});
    for (std::int64_t i = 0; i < 3; ++i) {
      data.a()(i, 0) = 1;
      data.a()(i, 1) = 0x1p-60;
      data.b()(0, i) = data.b()(1, i) = 1;
    }
    const InMode in_mode(mode.environment);
    data.run_well();
    EXPECT_EQ(data.c()(1, 1), mode.environment == FE_UPWARD ? 1 + 0x1p-52 : 1.0) << mode.name;
  }
}

TEST(RoundingOfPlans, FollowsTheThreadOrIsRefused) {
  GemmDataOf<double> data({.m = 2, .n = 2, .k = 2, .accuracy = "exact"});
  const auto problem = data.problem();
  const auto options = data.options();
  const auto operands = data.operands();
  kintsugi_plan made = nullptr;
  ASSERT_EQ(kintsugi_plan_create(nullptr, &problem, &options, &made), KINTSUGI_SUCCESS);
  EXPECT_EQ(kintsugi_plan_execute(nullptr, made, &operands), KINTSUGI_SUCCESS);
  {
    const InMode down(FE_DOWNWARD);
    EXPECT_EQ(kintsugi_plan_execute(nullptr, made, &operands), KINTSUGI_NOT_SUPPORTED);
    EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("mode nearest"));
    EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("down now"));
  }
  kintsugi_plan_destroy(made);
}

TEST(RoundingOfPairs, IsToNearestAlone) {
  GemmDataOf<core::DoubleDouble> data({.m = 2, .n = 2, .k = 2, .accuracy = "exact"});
  const InMode up(FE_UPWARD);
  EXPECT_EQ(data.run(), KINTSUGI_NOT_SUPPORTED);
}

// ---------------------------------------------------------------- exceptions

template <class T>
int exceptions_of(GemmDataOf<T>& data) {
  std::feclearexcept(FE_ALL_EXCEPT);
  data.run_well();
  const int raised = std::fetestexcept(FE_ALL_EXCEPT);
  std::feclearexcept(FE_ALL_EXCEPT);
  return raised & (FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO);
}

class Exceptions : public testing::TestWithParam<GemmCase> {};

TEST_P(Exceptions, AreThoseOfTheProduct) {
  GemmCase test = GetParam();
  test.m = test.n = 9;
  test.k = 12;
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto with = [&](double a, double b, double c = 0, double beta = 0) {
    test.beta = beta;
    GemmDataOf<double> data(test);
    data.a()(3, 5) = a;
    data.b()(5, 4) = b;
    if (beta != 0) data.c()(3, 4) = c;
    return exceptions_of(data);
  };
  EXPECT_EQ(with(1, 2), 0);
  EXPECT_EQ(with(1e-300, 1e-300), 0);
  EXPECT_EQ(with(1e200, 1e200), FE_OVERFLOW);
  EXPECT_EQ(with(1e150, 1e150), 0);
  EXPECT_EQ(with(infinity, 1), 0);
  EXPECT_EQ(with(infinity, 0), FE_INVALID);
  EXPECT_EQ(with(nan, 1), 0);
  EXPECT_EQ(with(1, 1, 1e300, 1e100), FE_OVERFLOW);
  EXPECT_EQ(with(1, 1, infinity, 0.5), 0);
  EXPECT_EQ(with(1, 1, nan, 2), 0);
  EXPECT_EQ(with(infinity, 1, -infinity, 2), FE_INVALID);
}
INSTANTIATE_TEST_SUITE_P(Programs, Exceptions,
                         testing::Values(GemmCase{.policy = "native", .threads = 1},
                                         GemmCase{.policy = "emulate"}, GemmCase{.accuracy = "exact"},
                                         GemmCase{.scheme = "ozaki2"}, GemmCase{.accuracy = "reproducible"}));

}  // namespace
}  // namespace kintsugi::test
