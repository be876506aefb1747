// Tests contracts, correct rounding, scalars and special values of complex products against exact references.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/support/c_objects.hpp"
#include "tests/support/complex_reference.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/number_kind.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class ComplexValues : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexValues, Reals);

TYPED_TEST(ComplexValues, ExactRoundsEachPartOnce) {
  using Element = std::complex<TypeParam>;
  std::mt19937 random(11);
  const double scalars[] = {1, 0, -1, 0.75, 1e-20, -3e7, 0x1.fffffep-3};
  for (const std::string distribution :
       {"uniform", "phi:2", "span:60", "cancellation:30", "subnormal", "subnormal-mixed", "integer:9"}) {
    for (const std::int64_t k : {1, 7, 40}) {
      GemmCase test{.m = 4, .n = 3, .k = k, .distribution = distribution};
      test.accuracy = "exact";
      test.engine = "reference";
      test.alpha = scalars[random() % 7];
      test.alpha_im = scalars[random() % 7];
      test.beta = scalars[random() % 7];
      test.beta_im = scalars[random() % 7];
      test.op_a = ops[random() % 3];
      test.op_b = ops[random() % 3];
      test.layout = layouts[random() % 2];
      test.seed = random();
      GemmDataOf<Element> data(test);
      const std::vector<Element> before = data.result();
      data.run_well();
      for (std::int64_t e = 0; e < 12; ++e) {
        const std::int64_t i = e % 4, j = e / 4;
        const ExactParts exact = exact_parts(data, before[e], i, j);
        ASSERT_EQ(data.c()(i, j).real(), rounded_once<TypeParam>(exact.re)) << distribution << " k " << k;
        ASSERT_EQ(data.c()(i, j).imag(), rounded_once<TypeParam>(exact.im)) << distribution << " k " << k;
      }
    }
  }
}

// Draws a case; in every fourth trial its scalars are neither one nor zero.
GemmCase contract_case(std::mt19937& random, int trial) {
  GemmCase test{.m = 3, .n = 4, .k = trial == 0 ? 1 : draw(random, 200)};
  test.distribution = trial % 3 == 0 ? "phi:2" : trial % 3 == 1 ? "uniform" : "graded:40";
  test.op_a = ops[trial % 3];
  test.op_b = ops[trial / 3 % 3];
  test.layout = layouts[trial % 2];
  test.seed = random();
  if (trial % 4 == 3) test.alpha = -0.7, test.alpha_im = 0.3, test.beta = 0.2, test.beta_im = -5;
  return test;
}

// Expects the errors of both parts of every element to be at most `allowed` times their magnitudes, plus a
// few units of the smallest subnormal.
template <class T>
void expect_parts_within(const GemmCase& test, double allowed) {
  constexpr double smallest = std::is_same_v<T, float> ? 0x1p-149 : 0x1p-1074;
  GemmDataOf<std::complex<T>> data(test);
  const std::vector<std::complex<T>> before = data.result();
  data.run_well();
  for (std::int64_t e = 0; e < test.m * test.n; ++e) {
    const std::int64_t i = e % test.m, j = e / test.m;
    const ExactParts exact = exact_parts(data, before[static_cast<std::size_t>(e)], i, j);
    const std::complex<T> c = data.c()(i, j);
    ASSERT_LE(magnitude(exact.re - Mpfr(c.real())).to_double(),
              allowed * exact.re_magnitude.to_double() + 8 * smallest);
    ASSERT_LE(magnitude(exact.im - Mpfr(c.imag())).to_double(),
              allowed * exact.im_magnitude.to_double() + 8 * smallest);
  }
}

// The contract of the real part is coefficient (|Re A||Re B| + |Im A||Im B|), that of the imaginary part
// likewise; the scalars' roundings are added.
TYPED_TEST(ComplexValues, ContractsHoldForEachPart) {
  constexpr bool is_single = std::is_same_v<TypeParam, float>;
  constexpr double unit = is_single ? 0x1p-24 : 0x1p-53;
  std::mt19937 random(12);
  for (const std::string engine : {"reference", "cpu"}) {
    if (engine == "cpu" && !has_cpu_engine()) continue;
    for (const std::string policy : {"emulate", "native"}) {
      for (const std::string accuracy : {is_single ? "fp32" : "fp64", is_single ? "1e-4" : "1e-10"}) {
        for (int trial = 0; trial < (thorough ? 12 : 4); ++trial) {
          GemmCase test = contract_case(random, trial);
          test.engine = engine;
          test.policy = policy;
          test.accuracy = accuracy;
          SCOPED_TRACE(engine + " " + policy + " " + accuracy + " trial " + std::to_string(trial));
          const double contract = accuracy.starts_with("fp") ? (2.0 * static_cast<double>(test.k) + 8) * unit
                                                             : std::stod(accuracy);
          // Seven operations on scalars lose at most one unit of all magnitudes each.
          expect_parts_within<TypeParam>(test, contract + (trial % 4 == 3 ? 8 * unit : unit));
        }
      }
    }
  }
}

// Sums of small integers are exact in any order, for every op and layout.
TYPED_TEST(ComplexValues, NativeProductsAreRightForEveryOpAndLayout) {
  using Element = std::complex<TypeParam>;
  for (const std::string engine : {"reference", "cpu"}) {
    if (engine == "cpu" && !has_cpu_engine()) continue;
    for (const auto layout : layouts) {
      for (const auto op_a : ops) {
        for (const auto op_b : ops) {
          GemmCase test{.m = 5, .n = 3, .k = 7, .op_a = op_a, .op_b = op_b, .layout = layout};
          test.distribution = "integer:9";
          test.engine = engine;
          test.policy = "native";
          test.pad_a = 2, test.pad_c = 1;
          test.alpha = 2, test.alpha_im = -3, test.beta = 0, test.beta_im = 1;
          test.batch = 2;
          GemmDataOf<Element> data(test);
          for (std::int64_t t = 0; t < 2; ++t) {
            for (std::int64_t e = 0; e < 15; ++e)
              data.c(t)(e % 5, e / 5) = Element(TypeParam(e), TypeParam(3 - e));
          }
          data.run_well();
          for (std::int64_t t = 0; t < 2; ++t) {
            for (std::int64_t e = 0; e < 15; ++e) {
              const Element old(TypeParam(e), TypeParam(3 - e));
              const ExactParts exact = exact_parts(data, old, e % 5, e / 5, t);
              ASSERT_EQ(data.c(t)(e % 5, e / 5),
                        Element(TypeParam(exact.re.to_double()), TypeParam(exact.im.to_double())))
                  << engine << " layout " << layout << " ops " << op_a << op_b;
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(ComplexValues, ScalarsFollowTheTable) {
  using Element = std::complex<TypeParam>;
  GemmCase test{.m = 3, .n = 3, .k = 4, .alpha = 0, .beta = 2, .beta_im = -1};
  GemmDataOf<Element> scaled(test);
  for (std::int64_t e = 0; e < 9; ++e) scaled.c()(e % 3, e / 3) = Element(TypeParam(e), 4);
  const auto problem = scaled.problem();
  const auto options = scaled.options();
  auto operands = scaled.operands();
  operands.a = operands.b = nullptr;  // alpha = 0: not read
  ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  for (std::int64_t e = 0; e < 9; ++e)
    EXPECT_EQ(scaled.c()(e % 3, e / 3), Element(TypeParam(2 * e + 4), TypeParam(8 - e)));

  test.beta = 1, test.beta_im = 0;  // bitwise untouched
  GemmDataOf<Element> untouched(test);
  for (Element& x : untouched.raw_c()) x = poison_of<Element>();
  const auto before = bits_of(untouched.raw_c());
  const auto the_operands = untouched.operands();
  ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &the_operands), KINTSUGI_SUCCESS);
  EXPECT_EQ(bits_of(untouched.raw_c()), before);

  test = {.m = 3, .n = 3, .k = 4};  // beta = 0: the poison of C is not read
  GemmDataOf<Element> unread(test);
  unread.run_well();
  for (const Element& x : unread.result()) EXPECT_TRUE(std::isfinite(x.real()) && std::isfinite(x.imag()));
}

// The reference is naive complex arithmetic in double, where finite float data cannot overflow; a real alpha
// or beta multiplies each part.
TEST(ComplexSpecialValues, AreThoseOfNaiveComplexArithmetic) {
  using Element = std::complex<float>;
  std::mt19937 random(13);
  int placements = 0;
  for (const std::string scheme : {"fp16x3-wide", "ozaki2", "superaccumulator", ""}) {
    for (int trial = 0; trial < (thorough ? 100 : 10); ++trial) {
      GemmCase test{.m = draw(random, 6), .n = draw(random, 6), .k = draw(random, 30)};
      test.distribution = trial % 3 == 0 ? "special:0.2" : "special:0.01";
      test.seed = 60 + static_cast<std::uint64_t>(trial);
      test.scheme = scheme;
      test.engine = "reference";
      test.op_a = ops[trial % 3];
      test.op_b = ops[trial / 3 % 3];
      test.alpha = -2, test.alpha_im = trial % 2 == 0 ? 0 : 0.5;
      test.beta = trial % 4 == 0 ? 0 : 0.5;
      GemmDataOf<Element> data(test);
      const std::vector<Element> before = data.result();
      data.run_well();
      for (std::int64_t e = 0; e < test.m * test.n; ++e) {
        const std::int64_t i = e % test.m, j = e / test.m;
        double re = 0, im = 0;
        for (std::int64_t p = 0; p < test.k; ++p) {
          const std::complex<double> a(a_element(data, i, p)), b(b_element(data, p, j));
          re += a.real() * b.real();
          re -= a.imag() * b.imag();
          im += a.real() * b.imag();
          im += a.imag() * b.real();
        }
        double first = -2 * re, second = -2 * im;
        if (test.alpha_im != 0) first -= 0.5 * im, second += 0.5 * re;
        if (test.beta != 0) first += 0.5 * before[e].real(), second += 0.5 * before[e].imag();
        ASSERT_EQ(kind_of(data.c()(i, j).real()), kind_of(first)) << scheme << " trial " << trial;
        ASSERT_EQ(kind_of(data.c()(i, j).imag()), kind_of(second)) << scheme << " trial " << trial;
        placements += kind_of(first) != NumberKind::finite;
      }
    }
  }
  EXPECT_GT(placements, thorough ? 1000 : 50);
}

}  // namespace
}  // namespace kintsugi::test
