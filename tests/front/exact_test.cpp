// Tests the contract `exact`: C is RN(alpha AB + beta C), bit for bit, for all finite operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

template <class T>
class Exact : public testing::Test {
 protected:
  static GemmCase base(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& distribution) {
    return {.m = m, .n = n, .k = k, .distribution = distribution, .engine = "reference", .accuracy = "exact"};
  }

  // Expects every element to be the exact result rounded once (-0 counts as +0).
  static void expect_correctly_rounded(GemmDataOf<T>& data) {
    std::vector<T> expected(static_cast<std::size_t>(data.test().m * data.test().n));
    const MatrixView<T> exact{expected.data(), data.test().m, data.test().n, 1, data.test().m};
    measure::Product<T> product{constant(data.a()), constant(data.b()), data.alpha(), data.beta()};
    product.c0 = constant(data.c());
    measure::exact_product<T>(product, exact);
    data.run_well();
    for (std::int64_t j = 0; j < data.test().n; ++j) {
      for (std::int64_t i = 0; i < data.test().m; ++i) {
        ASSERT_EQ(data.c()(i, j), exact(i, j))
            << data.test().distribution << " k " << data.test().k << " alpha " << data.test().alpha
            << " beta " << data.test().beta << " at " << i << ", " << j;
      }
    }
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Exact, Types);

TYPED_TEST(Exact, RoundsOnceOnEveryDistribution) {
  std::mt19937 random(9);
  const double scalars[] = {1, -1, 0.75, 1e-20, -3e7, 0x1.fffffep-3};
  const bool wide = std::is_same_v<TypeParam, double>;
  for (const std::string distribution : {"uniform",         "uniform01",
                                         "phi:0.5",         "phi:2",
                                         "phi:4",           "type1",
                                         "type4",           "offset:-100",
                                         "graded:40",       "graded-inner:60",
                                         "diagonal:100",    "span:60",
                                         "span:100",        wide ? "span:2000" : "span:200",
                                         "cancellation:30", "cancellation:200",
                                         "subnormal",       "subnormal-mixed",
                                         "integer:9",       "powers-of-two:60"}) {
    for (const std::int64_t k : {1, 7, 64, 300}) {
      if (!thorough && k == 300) continue;
      GemmCase test = this->base(9, 8, k, distribution);
      test.alpha = random() % 2 == 0 ? 1 : scalars[random() % 6];
      test.beta = random() % 2 == 0 ? 0 : scalars[random() % 6];
      test.op_a = static_cast<kintsugi_op>(random() % 3);
      test.layout = static_cast<kintsugi_layout>(random() % 2);
      test.seed = random();
      GemmDataOf<TypeParam> data(test);
      this->expect_correctly_rounded(data);
    }
  }
}

TYPED_TEST(Exact, RoundsOnceForOverflowTiesAndSubnormals) {
  using T = TypeParam;
  const T huge = std::numeric_limits<T>::max();
  const T tiny = std::numeric_limits<T>::denorm_min();
  const std::vector<std::vector<std::pair<T, T>>> sums{
      {{huge, 2}, {huge, -2}},                                                     // 0
      {{huge, 1}},                                                                 // FLT_MAX
      {{huge, 1}, {huge, std::ldexp(T(1), -std::numeric_limits<T>::digits - 1)}},  // the tie below 2^(e + 1)
      {{huge, 1}, {huge, std::ldexp(T(1), -std::numeric_limits<T>::digits)}},      // infinity
      {{tiny, T(0.5)}},                                                            // a tie: zero
      {{tiny, T(0.5)}, {tiny, tiny}},                                              // above it
      {{tiny, T(1.5)}},                                                            // a tie: to even
      {{1, 1}, {std::ldexp(T(1), -std::numeric_limits<T>::digits), 1}},            // a tie at 1
      {{1, 1}, {std::ldexp(T(1), -std::numeric_limits<T>::digits), 1}, {tiny, tiny}},
      {{1, 1}, {std::ldexp(T(1), -std::numeric_limits<T>::digits), 1}, {tiny, -tiny}},
      {{1, std::ldexp(T(1), -60)}, {std::ldexp(T(1), -30), 1}},  // 2^-30 + 2^-60
      {{1, 0}},
  };
  for (std::size_t s = 0; s < sums.size(); ++s) {
    GemmDataOf<T> data(this->base(1, 1, std::ssize(sums[s]), "uniform"));
    for (std::size_t p = 0; p < sums[s].size(); ++p) {
      data.a()(0, static_cast<std::int64_t>(p)) = sums[s][p].first;
      data.b()(static_cast<std::int64_t>(p), 0) = sums[s][p].second;
    }
    SCOPED_TRACE(s);
    this->expect_correctly_rounded(data);
  }
}

TYPED_TEST(Exact, CandidatesFollowTheRanges) {
  const auto candidate_of = [&](const std::string& distribution) {
    GemmDataOf<TypeParam> data(this->base(5, 5, 20, distribution));
    return run_checked(data);
  };
  EXPECT_THAT(candidate_of("integer:9"), testing::Pair(0, 0));
  EXPECT_THAT(candidate_of("uniform").first, testing::Le(1));
  EXPECT_THAT(candidate_of("span:60").first, testing::AllOf(testing::Ge(1), testing::Le(3)));
}

// Element (7, 9) is a tie that only a product far below every candidate's last place decides, so it is left
// to the superaccumulator; most other elements are not.
TYPED_TEST(Exact, ElementsThatNoCandidateProvesAreRecomputed) {
  using T = TypeParam;
  GemmDataOf<T> data(this->base(200, 150, 40, "uniform"));
  const int digits = std::numeric_limits<T>::digits;
  for (std::int64_t p = 0; p < 40; ++p) data.a()(7, p) = data.b()(p, 9) = 0;
  data.a()(7, 0) = data.b()(0, 9) = 1;
  data.a()(7, 1) = std::ldexp(T(1), -digits);
  data.b()(1, 9) = 1;
  data.a()(7, 2) = std::ldexp(T(1), -120);
  data.b()(2, 9) = 1;
  EXPECT_GE(run_checked(data).second, 1);
  EXPECT_LE(run_checked(data).second, 200 * 150 / 16);
  EXPECT_EQ(data.c()(7, 9), 1 + std::numeric_limits<T>::epsilon());
  this->expect_correctly_rounded(data);
}

TYPED_TEST(Exact, BitsAreTheSameOnEveryEngineAndCandidate) {
  for (const char* distribution : {"phi:1", "cancellation:20"}) {
    GemmCase test = this->base(40, 30, 120, distribution);
    test.alpha = 0.3;
    test.beta = -1.7;
    std::vector<GemmCase> variations;
    for (const char* engine : {"reference", "cpu"}) {
      for (const int threads : {1, 3}) {
        GemmCase variation = test;
        variation.engine = engine;
        variation.threads = threads;
        variations.push_back(variation);
      }
    }
    for (const char* scheme : {"superaccumulator", "ozaki2:moduli=49", "ozaki2:moduli=40"}) {
      variations.push_back(test);
      variations.back().accuracy.clear();
      variations.back().scheme = scheme;
    }
    GemmDataOf<TypeParam> first(test);
    first.run_well();
    for (const GemmCase& variation : variations) {
      GemmDataOf<TypeParam> data(variation);
      data.run_well();
      EXPECT_EQ(bits_of(data.result()), bits_of(first.result()))
          << variation.engine << variation.scheme << variation.threads;
    }
  }
}

TYPED_TEST(Exact, PermutationsOfKChangeNothing) {
  GemmDataOf<TypeParam> plain(this->base(6, 5, 301, "phi:3")), permuted(this->base(6, 5, 301, "phi:3"));
  for (std::int64_t p = 0; p < 301; ++p) {
    for (std::int64_t i = 0; i < 6; ++i) permuted.a()(i, p) = plain.a()(i, p * 8 % 301);
    for (std::int64_t j = 0; j < 5; ++j) permuted.b()(p, j) = plain.b()(p * 8 % 301, j);
  }
  plain.run_well();
  permuted.run_well();
  EXPECT_EQ(bits_of(plain.result()), bits_of(permuted.result()));
}

TYPED_TEST(Exact, SpecialValuesFollowTheTable) {
  using T = TypeParam;
  GemmDataOf<T> data(this->base(3, 2, 4, "uniform"));
  data.a()(0, 1) = std::numeric_limits<T>::quiet_NaN();
  data.a()(1, 2) = -std::numeric_limits<T>::infinity();
  data.b()(2, 0) = 2;
  data.b()(2, 1) = 0;
  data.run_well();
  EXPECT_TRUE(std::isnan(data.c()(0, 0)) && std::isnan(data.c()(0, 1)));
  EXPECT_EQ(data.c()(1, 0), -std::numeric_limits<T>::infinity());
  EXPECT_TRUE(std::isnan(data.c()(1, 1)));
  EXPECT_TRUE(std::isfinite(data.c()(2, 0)) && std::isfinite(data.c()(2, 1)));
}

// Sums of the largest residues are longer than an int32 accumulator holds.
TYPED_TEST(Exact, LongSumsOfTheLargestResiduesAreRoundedOnce) {
  if (!thorough) GTEST_SKIP() << "long sums";
  GemmDataOf<TypeParam> data(this->base(1, 2, 140000, "uniform"));
  for (std::int64_t p = 0; p < 140000; ++p) {
    data.a()(0, p) = 128;  // -128 modulo 256
    data.b()(p, 0) = 127.5F;
    data.b()(p, 1) = -128;
  }
  this->expect_correctly_rounded(data);
}

TEST(Ozaki2, TooFewModuliAreAnError) {
  GemmData data(GemmCase{.m = 1, .n = 1, .k = 100000, .scheme = "ozaki2:moduli=2", .engine = "reference"});
  EXPECT_EQ(data.run(), KINTSUGI_NOT_SUPPORTED);
  EXPECT_THAT(kintsugi_last_error(), testing::HasSubstr("2 moduli hold"));
  data = GemmData(GemmCase{.scheme = "ozaki2:moduli=50", .engine = "reference"});
  EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING);
}

}  // namespace
}  // namespace kintsugi::test
