// Tests programs whose elements are checked after the product: FP64's contract under the policy emulate,
// tolerances, powers of two along k. (The contract `exact` is in exact_test.cpp.)
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "engines/registry.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

using DoubleData = GemmDataOf<double>;

GemmCase emulated(std::int64_t m, std::int64_t n, std::int64_t k, const std::string& distribution,
                  const std::string& accuracy = "fp64") {
  return {.m = m,
          .n = n,
          .k = k,
          .distribution = distribution,
          .engine = has_cpu_engine() ? "cpu" : "reference",
          .policy = "emulate",
          .accuracy = accuracy};
}

// Expects |error| <= coefficient (|A||B|)_ij plus the smallest subnormal, the last rounding included.
void expect_within(DoubleData& data, double coefficient) {
  data.run_well();
  for (const auto& element : element_errors(data)) {
    ASSERT_LE(std::abs(element.error),
              coefficient * element.absolute + std::numeric_limits<double>::denorm_min())
        << data.test().distribution << " k = " << data.test().k;
  }
}

TEST(Checked, Fp64KeepsItsContractOnAnyRange) {
  for (const char* distribution : {"uniform", "uniform01", "phi:2", "phi:4", "type3", "graded:1000",
                                   "graded-inner:900", "diagonal:100", "gram-diagonal:1500", "crossed:60",
                                   "cancellation:60", "cancellation:300", "span:2000", "subnormal-mixed"}) {
    for (const std::int64_t k : {1, 3, 64, 257}) {
      if (!thorough && k == 257) continue;
      DoubleData data(emulated(13, 9, k, distribution));
      expect_within(data, (static_cast<double>(k) + 8) * 0x1p-53);
    }
  }
}

TEST(Checked, TolerancesTakeFewerModuli) {
  DoubleData coarse(emulated(40, 30, 200, "phi:1", "1e-6"));
  expect_within(coarse, 1e-6);
  DoubleData fine(emulated(40, 30, 200, "phi:1", "1e-13"));
  expect_within(fine, 1e-13);
  const auto first_products = [](const DoubleData& data) {
    const json candidate = PlanOf(data).describe().at("candidates").at(0);
    EXPECT_TRUE(candidate.at("checked"));
    return candidate.at("program").at("products").get<int>();
  };
  EXPECT_LT(first_products(coarse), first_products(fine));
}

// If sums cancel, |AB| is no bound for |A||B|; the product of magnitudes proves the elements.
TEST(Checked, CancellationIsProvedFromMagnitudes) {
  DoubleData data(emulated(60, 50, 64, "uniform"));
  for (std::int64_t p = 0; p < 32; ++p) {
    for (std::int64_t i = 0; i < 60; ++i) data.a()(i, p + 32) = data.a()(i, p);
    for (std::int64_t j = 0; j < 50; ++j) data.b()(p + 32, j) = -data.b()(p, j);
  }
  EXPECT_EQ(run_checked(data).second, 0);
  for (std::int64_t i = 0; i < 60; ++i) EXPECT_EQ(data.c()(i, 3), 0) << i;
}

// X D and D^-1 Y, D powers of two over hundreds of binades, take the candidate and have the bits of X and Y
// where elements are checked; norms, which prove others, do not see such factors.
TEST(Checked, PowersOfTwoAlongKChangeNoBits) {
  for (const char* accuracy : {"fp64", "exact"}) {
    DoubleData plain(emulated(150, 140, 60, "uniform", accuracy));
    const auto [candidate, recomputed] = run_checked(plain);
    for (const int binades : {300, -900}) {
      DoubleData scaled(emulated(150, 140, 60, "uniform", accuracy));
      for (std::int64_t p = 0; p < 60; ++p) {
        const int d = static_cast<int>(p * 37 % 60 * binades / 60);
        for (std::int64_t i = 0; i < 150; ++i) scaled.a()(i, p) = std::ldexp(scaled.a()(i, p), d);
        for (std::int64_t j = 0; j < 140; ++j) scaled.b()(p, j) = std::ldexp(scaled.b()(p, j), -d);
      }
      const auto [scaled_candidate, scaled_recomputed] = run_checked(scaled);
      const bool is_checked = std::string(accuracy) == "exact";
      if (is_checked) EXPECT_EQ(scaled_candidate, candidate) << accuracy << binades;
      EXPECT_LE(scaled_recomputed, recomputed + 150 * 140 / 100);
      if (is_checked) {
        EXPECT_EQ(bits_of(scaled.result()), bits_of(plain.result()));
      }
    }
  }
}

TEST(Checked, BitsDoNotDependOnThreadsLimitOrEngine) {
  for (const char* distribution : a_part_of({"phi:3", "gram-diagonal:400"})) {
    GemmCase test = emulated(300, 140, 50, distribution);
    test.threads = 1;
    DoubleData unlimited(test);
    unlimited.run_well();
    const auto expected = bits_of(unlimited.result());
    const std::size_t full = PlanOf(unlimited).workspace();
    std::vector<GemmCase> variations(3, test);
    variations[0].threads = 4;
    variations[1].workspace_limit = static_cast<std::int64_t>(full * 6 / 10);
    variations[2].engine = "reference";
    for (const GemmCase& variation : variations) {
      DoubleData data(variation);
      data.run_well();
      EXPECT_EQ(bits_of(data.result()), expected) << distribution << variation.threads << variation.engine;
    }
  }
}

#if defined(__x86_64__)
// OpenMP's threads keep the modes that the program set in them: here flush to zero and rounding up.
template <class T>
void expect_bits_in_other_modes(const std::string& scheme) {
  GemmCase test = emulated(300, 140, 70, "uniform", scheme.empty() ? "exact" : "");
  test.policy.clear();
  test.scheme = scheme;
  test.threads = 3;
  test.alpha = 0x1p60;
  GemmDataOf<T> plain(test), disturbed(test);
  for (GemmDataOf<T>* data : {&plain, &disturbed}) {
    for (std::int64_t i = 0; i < 300; i += 2) {
      for (std::int64_t p = 0; p < 70; ++p) data->a()(i, p) *= std::numeric_limits<T>::min();
    }
  }
  plain.run_well();
  const Handle handle;
  ASSERT_EQ(kintsugi_set(handle, "rounding", "nearest"), KINTSUGI_SUCCESS);
  kintsugi_status status = KINTSUGI_INTERNAL;
  std::thread([&] {
#pragma omp parallel num_threads(test.threads)
    _mm_setcsr(0x1f80 | 0x8040 | 0x4000);
    status = disturbed.run(handle);
  }).join();
  ASSERT_EQ(status, KINTSUGI_SUCCESS) << scheme;
  EXPECT_EQ(bits_of(disturbed.result()), bits_of(plain.result())) << scheme;
}

TEST(Checked, FloatingPointModesOfOpenMpThreadsChangeNoBits) {
  for (const char* scheme :
       a_part_of({"", "ozaki2", "ozaki-int8", "int52", "ozaki-fp16:mode=cr", "ozaki-fp16:mode=dp"})) {
    expect_bits_in_other_modes<double>(scheme);
    expect_bits_in_other_modes<float>(scheme);
  }
}
#endif

TEST(Checked, PowersOfTwoOnAMatrixCommute) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    GemmCase test = emulated(5, 4, 26, "gram-diagonal:120");
    test.seed = seed;
    DoubleData plain(test), scaled(test);
    const int e = static_cast<int>(seed % 7) - 3;
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::int64_t p = 0; p < 26; ++p) scaled.a()(i, p) = std::ldexp(scaled.a()(i, p), e);
    }
    plain.run_well();
    scaled.run_well();
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::int64_t j = 0; j < 4; ++j)
        ASSERT_EQ(scaled.c()(i, j), std::ldexp(plain.c()(i, j), e)) << seed;
    }
  }
}

// Slices are padded to 128 vectors, so a few long sums are cheaper without slices.
TEST(Checked, FewLongSumsAreSummedExactlyWithoutResidues) {
  const PlanOf long_sums(DoubleData(emulated(2, 3, 200000, "uniform", "exact")));
  EXPECT_THAT(candidates(long_sums.describe()), testing::ElementsAre("superaccumulator"));
  EXPECT_LT(long_sums.workspace(), std::size_t{1} << 26);
  const PlanOf shorter_sums(DoubleData(emulated(60, 50, 70000, "integer:3", "exact")));
  const auto of_shorter = candidates(shorter_sums.describe());
  if (core::find_engine("cpu")->relative_rate(core::FormatId::int8) < 1)
    GTEST_SKIP() << "exact sums take less time than residues on a CPU without fast int8 products";
  EXPECT_EQ(of_shorter.size(), 5);
}

// The tolerance hardly exceeds the last rounding, so elements must be correctly rounded.
TEST(Checked, TolerancesOfHalfAUnitAreMet) {
  DoubleData data(emulated(7, 6, 4, "span:60", "1.2e-16"));
  expect_within(data, 1.2e-16);
}

// Permuted rows keep their bits, so no element depends on the others of its tile.
TEST(Checked, PermutationsOfRowsCommute) {
  DoubleData plain(emulated(200, 10, 40, "phi:4")), permuted(emulated(200, 10, 40, "phi:4"));
  for (std::int64_t i = 0; i < 200; ++i) {
    for (std::int64_t p = 0; p < 40; ++p) permuted.a()(i, p) = plain.a()(i * 7 % 200, p);
  }
  plain.run_well();
  permuted.run_well();
  for (std::int64_t i = 0; i < 200; ++i) {
    for (std::int64_t j = 0; j < 10; ++j) ASSERT_EQ(permuted.c()(i, j), plain.c()(i * 7 % 200, j));
  }
}

}  // namespace
}  // namespace kintsugi::test
