// The scheme int52: its bits on every engine, its bound, and where it rounds once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "schemes/bound.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::test {
namespace {

std::string with_words(int words) { return "int52:words=" + std::to_string(words); }

// The widest dynamic range with which every element of a vector is on the grid: a scaled vector's largest
// magnitude is at least 2^49, the grid's last place is 2^(-52 (words - 1)), and an element has 23 or 52 bits
// below its leading one.
int exact_range(int words, core::OperandType type) {
  return 49 + 52 * (words - 1) - (type == core::OperandType::f32 ? 23 : 52);
}

template <class T>
class Int52Scheme : public testing::Test {
 protected:
  static GemmDataOf<T> product(GemmCase test, const std::string& scheme) {
    test.scheme = scheme;
    GemmDataOf<T> data(test);
    data.run_well();
    return data;
  }

  static void expect_bits(const GemmCase& test, const std::string& scheme, const std::vector<T>& expected) {
    EXPECT_EQ(bits_of(product(test, scheme).result()), bits_of(expected))
        << scheme << " " << test.distribution << " " << test.engine << " threads " << test.threads
        << " limit " << test.workspace_limit;
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Int52Scheme, Types);

TYPED_TEST(Int52Scheme, HasTheSameBitsOnEveryEngineThreadAndBlock) {
  const std::int64_t m = thorough ? 290 : 140;
  for (const char* distribution :
       a_part_of({"uniform", "phi:3", "subnormal-mixed", "graded:40", "special:0.01"})) {
    for (const int words : {1, 3}) {
      GemmCase test{.m = m, .n = m - 20, .k = 70, .distribution = distribution, .engine = "reference"};
      test.alpha = words == 1 ? 1 : -0.3;
      test.beta = words == 1 ? 0 : 1.7;
      const auto expected = this->product(test, with_words(words)).result();
      test.engine = "cpu";
      for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        test.threads = threads;
        this->expect_bits(test, with_words(words), expected);
      }
      test.threads = 1;
      test.workspace_limit = words == 1 ? 2'400'000 : 4'000'000;
      this->expect_bits(test, with_words(words), expected);
    }
  }
}

TYPED_TEST(Int52Scheme, StaysWithinItsBound) {
  const core::Engine& engine = *core::find_engine("cpu");
  if (!engine.unavailable_reason().empty()) GTEST_SKIP() << engine.unavailable_reason();
  for (const char* distribution : {"uniform", "phi:2", "span:60", "cancellation:30", "graded-inner:60"}) {
    for (int words = 1; words <= 4; ++words) {
      GemmDataOf<TypeParam> data = this->product(
          {.m = 20, .n = 17, .k = 130, .distribution = distribution, .engine = "cpu"}, with_words(words));
      const Allowance<TypeParam> allowed(*core::find_scheme(with_words(words)), engine, constant(data.a()),
                                         constant(data.b()));
      for (const measure::ElementError& element : element_errors(data)) {
        ASSERT_LE(std::abs(element.error), allowed(element)) << distribution << " " << words;
      }
    }
  }
}

// Within the exact range every element is RN(alpha AB + beta C), the superaccumulator's result.
TYPED_TEST(Int52Scheme, RoundsOnceWithinTheExactRange) {
  const auto type = std::is_same_v<TypeParam, float> ? core::OperandType::f32 : core::OperandType::f64;
  for (int words = 1; words <= 4; ++words) {
    const int dynamic_range = exact_range(words, type);
    if (dynamic_range < 0) continue;
    for (const double beta : {0.0, -0.7}) {
      GemmCase test{.m = 12, .n = 9, .k = 90, .beta = beta, .engine = "cpu"};
      test.distribution = "span:" + std::to_string(dynamic_range);
      test.alpha = beta == 0 ? 1 : 1.3;
      const auto result = this->product(test, with_words(words)).result();
      GemmCase exact = test;
      exact.scheme = "superaccumulator";
      EXPECT_EQ(bits_of(result), bits_of(this->product(exact, exact.scheme).result()))
          << words << " " << beta;
    }
  }
}

TYPED_TEST(Int52Scheme, KeepsItsBitsUnderPermutationsOfK) {
  const GemmCase test{.m = 6, .n = 5, .k = 301, .distribution = "phi:1", .scheme = "int52", .engine = "cpu"};
  GemmDataOf<TypeParam> plain(test), permuted(test);
  for (std::int64_t p = 0; p < 301; ++p) {
    const std::int64_t source = p * 8 % 301;  // 8 is a unit modulo 301 = 7 * 43
    for (std::int64_t i = 0; i < 6; ++i) permuted.a()(i, p) = plain.a()(i, source);
    for (std::int64_t j = 0; j < 5; ++j) permuted.b()(p, j) = plain.b()(source, j);
  }
  plain.run_well();
  permuted.run_well();
  EXPECT_EQ(bits_of(plain.result()), bits_of(permuted.result()));
}

// Results that are subnormal, overflow or vanish cannot use the fast conversion of a sum.
TYPED_TEST(Int52Scheme, RoundsOnceToSubnormalsAndInfinity) {
  using limits = std::numeric_limits<TypeParam>;
  const TypeParam root = std::ldexp(TypeParam(1), limits::min_exponent / 2);
  for (const TypeParam factor : {TypeParam(1), limits::min(), limits::max() / 4, root, root / 4}) {
    GemmCase test{.m = 7, .n = 6, .k = 40, .distribution = "integer:9", .engine = "cpu"};
    test.scheme = "int52:words=2";
    GemmCase exact = test;
    exact.scheme = "superaccumulator";
    GemmDataOf<TypeParam> data(test), expected(exact);
    for (GemmDataOf<TypeParam>* run : {&data, &expected}) {
      for (std::int64_t p = 0; p < 40; ++p) {
        for (std::int64_t i = 0; i < 7; ++i) run->a()(i, p) *= factor / 16;
        for (std::int64_t j = 0; j < 6; ++j)
          run->b()(p, j) *= factor == root || factor == root / 4 ? root : TypeParam(1);
      }
      run->run_well();
    }
    EXPECT_EQ(bits_of(data.result()), bits_of(expected.result())) << factor;
  }
}

// A single word loses more than FP64's contract allows for k = 1; it can serve FP32 and tolerances.
TEST(Int52, OneWordLosesTooMuchForFp64) {
  EXPECT_GT(core::split_loss(core::find_scheme("int52")->program),
            core::contract_of_type(core::OperandType::f64, 1));
  EXPECT_LT(core::split_loss(core::find_scheme("int52")->program), 0x1p-48);
  EXPECT_LT(core::split_loss(core::find_scheme(with_words(2))->program), 0x1p-99);
}

// 2^25 - 1 products fit 128 bits; four words put four products of each index into one group.
TEST(Int52, SumsThatMayWrapAreRefused) {
  const auto plan = [](const std::string& scheme, std::int64_t k) {
    GemmCase test{.k = 1, .scheme = scheme, .engine = "reference"};
    GemmData data(test);
    kintsugi_problem problem = data.problem();
    problem.k = k;
    problem.ldb = k;
    const kintsugi_options options = data.options();
    kintsugi_plan made = nullptr;
    const auto status = kintsugi_plan_create(nullptr, &problem, &options, &made);
    kintsugi_plan_destroy(made);
    return status;
  };
  EXPECT_EQ(plan("int52", 33554431), KINTSUGI_SUCCESS);
  EXPECT_EQ(plan("int52", 33554432), KINTSUGI_NOT_SUPPORTED);
  EXPECT_THAT(kintsugi_last_error(),
              testing::AllOf(testing::HasSubstr("33554432"), testing::HasSubstr("int128")));
  EXPECT_EQ(plan(with_words(4), 8388607), KINTSUGI_SUCCESS);
  EXPECT_EQ(plan(with_words(4), 8388608), KINTSUGI_NOT_SUPPORTED);
}

TEST(Int52, RefusesMoreThanFourWords) {
  GemmData data(GemmCase{.scheme = "int52:words=5", .engine = "reference"});
  EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING);
  EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("words=1...4"));
}

}  // namespace
}  // namespace kintsugi::test
