// Tests special values by the table in docs/ARCHITECTURE.md, "Special values", and against plain sums in
// double.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>
#include <random>

#include "engines/registry.hpp"
#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/gemm_case.hpp"
#include "tests/support/number_kind.hpp"
#include "tests/support/scheme_bound.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace kintsugi::test {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

// Class of C(i, j) by a plain sum of products in double, where finite fp32 data cannot overflow.
NumberKind oracle(GemmData& data, std::int64_t t, std::int64_t i, std::int64_t j, float old) {
  double sum = 0;
  for (std::int64_t p = 0; p < data.test().k; ++p) {
    sum += static_cast<double>(data.a(t)(i, p)) * static_cast<double>(data.b(t)(p, j));
  }
  const double product = static_cast<double>(data.test().alpha) * sum;
  return kind_of(data.test().beta == 0 ? product : product + static_cast<double>(data.test().beta) * old);
}

class SpecialValues : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  GemmCase base(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return {.m = m, .n = n, .k = k, .scheme = GetParam().first, .engine = GetParam().second};
  }
};

TEST_P(SpecialValues, AreThoseOfAPlainSumInDouble) {
  std::mt19937 random(5);
  int placements = 0;
  for (int trial = 0; trial < (thorough ? 150 : 20); ++trial) {
    GemmCase test = base(1 + random() % 9, 1 + random() % 9, 1 + random() % 70);
    test.distribution = trial % 3 == 0 ? "special:0.2" : "special:0.01";
    test.seed = 50 + static_cast<std::uint64_t>(trial);
    test.alpha = trial % 5 == 0 ? -2.0F : 1.0F;
    test.beta = trial % 2 == 0 ? 0.0F : 0.5F;
    GemmData data(test);
    const auto before = data.raw_c();
    MatrixView<float> old = data.c();
    old.data = const_cast<float*>(before.data());
    data.run_well();
    for (std::int64_t i = 0; i < test.m; ++i) {
      for (std::int64_t j = 0; j < test.n; ++j) {
        const NumberKind expected = oracle(data, 0, i, j, test.beta == 0 ? 0.0F : old(i, j));
        ASSERT_EQ(kind_of(data.c()(i, j)), expected) << "trial " << trial << " element " << i << ", " << j;
        placements += expected != NumberKind::finite;
      }
    }
  }
  EXPECT_GT(placements, thorough ? 500 : 50);
}

TEST_P(SpecialValues, NanInARowGivesNanInThatRowOnly) {
  GemmData data(base(4, 5, 30));
  GemmData clean(base(4, 5, 30));
  data.a()(2, 7) = nan_value;
  for (std::int64_t j = 0; j < 5; ++j) data.b()(7, j) = clean.b()(7, j) = 0;  // even against zeros
  data.run_well();
  clean.run_well();
  for (std::int64_t j = 0; j < 5; ++j) {
    EXPECT_TRUE(std::isnan(data.c()(2, j)));
    for (const std::int64_t i : {0, 1, 3}) EXPECT_EQ(data.c()(i, j), clean.c()(i, j));
  }
}

TEST_P(SpecialValues, ScalarsFollowTheTable) {
  GemmCase test = base(3, 3, 4);
  test.alpha = nan_value;
  GemmData with_nan(test);
  with_nan.run_well();
  for (const float x : with_nan.result()) EXPECT_TRUE(std::isnan(x));

  test.alpha = 0;  // A and B are not read: NaN in them has no effect, and they may be null
  test.beta = 2;
  GemmData scaled(test);
  scaled.a()(0, 0) = nan_value;
  scaled.c()(1, 1) = nan_value;
  scaled.c()(0, 1) = 3;
  const auto problem = scaled.problem();
  const auto options = scaled.options();
  auto operands = scaled.operands();
  operands.a = operands.b = nullptr;
  ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(scaled.c()(0, 1), 6);
  EXPECT_TRUE(std::isnan(scaled.c()(1, 1)));

  test.beta = 0;
  GemmData zeroed(test);
  zeroed.run_well();
  for (const float x : zeroed.result()) EXPECT_EQ(x, 0);

  test.beta = 1;  // bitwise untouched, the poison included
  GemmData untouched(test);
  for (float& x : untouched.raw_c()) x = poison();
  const auto before = bits_of(untouched.raw_c());
  const auto the_operands = untouched.operands();
  ASSERT_EQ(kintsugi_gemm(nullptr, &problem, &options, &the_operands), KINTSUGI_SUCCESS);
  EXPECT_EQ(bits_of(untouched.raw_c()), before);
}

TEST_P(SpecialValues, EmptySumsLeaveC) {
  GemmCase empty = base(3, 3, 0);
  empty.beta = 1;
  GemmData no_inner(empty);
  const auto c_before = bits_of(no_inner.result());
  no_inner.run_well();
  EXPECT_EQ(bits_of(no_inner.result()), c_before);
}

TEST_P(SpecialValues, OldElementsAreNotReadWhenBetaIsZero) {
  GemmData data(base(3, 4, 10));  // C is poisoned with NaN
  data.run_well();
  for (const float x : data.result()) EXPECT_TRUE(std::isfinite(x));
}

// Schemes that scale vectors take FP32's whole range; fp16 and markidis do not.
class WideRange : public SpecialValues {};

TEST_P(WideRange, LargestNumberTimesOneIsFinite) {
  const core::Program& program = core::find_scheme(GetParam().first)->program;
  if (!program.format().floating && program.recombination == core::Recombination::weighted)
    GTEST_SKIP() << "on a grid of fewer bits the nearest neighbour of the largest number is infinity";
  for (const float x : {std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()}) {
    GemmData data(base(1, 1, 1));
    data.a()(0, 0) = x;
    data.b()(0, 0) = 1;
    data.run_well();
    EXPECT_TRUE(std::isfinite(data.c()(0, 0)));
    EXPECT_NEAR(data.c()(0, 0) / x, 1, coefficient(GetParam().first, GetParam().second, 1));
  }
}

// Candidates for a tolerance keep the largest numbers finite, so grids that would round them to infinity are
// no candidates.
TEST(FallbackChain, KeepsTheLargestNumbersFinite) {
  for (const char* accuracy : {"1e-4", "1e-3", "1e-2", "1e-1"}) {
    GemmData data(GemmCase{.policy = "emulate", .accuracy = accuracy});
    data.a()(0, 0) = std::numeric_limits<float>::max();
    data.b()(0, 0) = 1;
    data.run_well();
    EXPECT_TRUE(std::isfinite(data.c()(0, 0))) << accuracy;
  }
}

TEST_P(WideRange, SubnormalsAreNotFlushed) {
  GemmCase test = base(6, 5, 8);
  test.distribution = "subnormal";
  GemmData data(test);
  for (std::int64_t p = 0; p < 8; ++p) {
    for (std::int64_t j = 0; j < 5; ++j) data.b()(p, j) = p == 0 ? 1.0F : 0.0F;
  }
  data.run_well();
  for (std::int64_t i = 0; i < 6; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      // The scheme's own bound, then the last place of a subnormal.
      const double allowed = coefficient(GetParam().first, GetParam().second, test.k);
      EXPECT_NEAR(data.c()(i, j), data.a()(i, 0), std::abs(data.a()(i, 0)) * allowed + 0x1p-149);
    }
  }
}

TEST_P(WideRange, OverflowGivesInfinity) {
  GemmData data(base(1, 1, 2));
  data.a()(0, 0) = data.a()(0, 1) = data.b()(0, 0) = data.b()(1, 0) = 3e38F;
  data.run_well();
  EXPECT_EQ(data.c()(0, 0), static_cast<float>(infinity));
}

TEST_P(WideRange, ScalesOfHundredsOfBinadesAreUndone) {
  if (core::find_scheme(GetParam().first)->program.split_a.kind == core::SplitKind::tiles)
    GTEST_SKIP() << "rows that share tiles have one scale";
  GemmCase test = base(5, 5, 40);
  GemmData data(test);
  for (std::int64_t p = 0; p < 40; ++p) {
    for (std::int64_t i = 0; i < 5; ++i) {
      data.a()(i, p) = std::ldexp(data.a()(i, p), static_cast<int>(-120 + 60 * i));
      data.b()(p, i) = std::ldexp(data.b()(p, i), static_cast<int>(120 - 60 * i));
    }
  }
  data.run_well();
  for (std::int64_t i = 0; i < 5; ++i) {
    for (const auto& element : element_errors(data)) {
      const double allowed = coefficient(GetParam().first, GetParam().second, test.k);
      ASSERT_LE(std::abs(element.error), allowed * element.absolute + 0x1p-149);
    }
  }
}

#if defined(__x86_64__)
TEST_P(SpecialValues, CallersFloatingPointModesChangeNoBitsAndAreKept) {
  GemmCase test = base(20, 20, 100);
  test.distribution = "phi:2";
  test.threads = 2;
  GemmData plain(test);
  plain.run_well();
  GemmData disturbed(test);
  const Handle handle;
  ASSERT_EQ(kintsugi_set(handle, "rounding", "nearest"), KINTSUGI_SUCCESS);
  const unsigned before = _mm_getcsr();
  const unsigned flush_and_round_up = 0x1f80 | 0x8040 | 0x4000;  // FTZ, DAZ, rounding up
  _mm_setcsr(flush_and_round_up);
  const kintsugi_status status = disturbed.run(handle);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  ASSERT_EQ(status, KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(after & ~0x3fU, flush_and_round_up & ~0x3fU);
  EXPECT_EQ(bits_of(disturbed.result()), bits_of(plain.result()));
}
#endif

std::vector<std::pair<std::string, std::string>> schemes_on_engines(bool wide_only) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const core::Engine* engine : core::all_engines()) {
    if (!engine->unavailable_reason().empty()) continue;
    for (const core::Scheme* scheme : core::all_schemes()) {
      if (!worth_the_time(scheme->name)) continue;
      if (!wide_only || scheme->program.split_a.scale_vectors) {
        all.emplace_back(std::string(scheme->name), std::string(engine->name()));
      }
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<std::pair<std::string, std::string>>& test) {
  std::string name = test.param.first + "_" + test.param.second;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, SpecialValues, testing::ValuesIn(schemes_on_engines(false)), name_of);
INSTANTIATE_TEST_SUITE_P(All, WideRange, testing::ValuesIn(schemes_on_engines(true)), name_of);

}  // namespace
}  // namespace kintsugi::test
