// Tests ozaki-fp16 and ozaki-fp64: correct rounding, bits and refused calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "tests/schemes/correct_rounding.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

const std::vector<std::string> exact_schemes{"ozaki-fp16:mode=cr", "ozaki-fp64",
                                             "ozaki-fp16:mode=cr:k-block=64", "ozaki-fp16:mode=cr:grid=sigma",
                                             "ozaki-fp64:grid=sigma"};

TEST(OzakiCr, IsCorrectlyRounded) {
  for (const std::string& scheme : exact_schemes) {
    for (const char* distribution :
         a_part_of({"uniform", "subnormal-mixed", "phi:2", "cancellation:200", "uniform01", "phi:0.1",
                    "phi:4", "subnormal", "graded:900", "span:60", "cancellation:30", "offset:1022",
                    "integer:9", "power-of-two:511", "powers-of-two:60"})) {
      GemmCase test{.m = 9, .n = 7, .k = 150, .distribution = distribution, .engine = "reference"};
      expect_correctly_rounded<double>(test, scheme);
      test.alpha = -0x1.1p-20;
      test.beta = 3e-7;
      expect_correctly_rounded<double>(test, scheme);
    }
    for (const char* distribution :
         a_part_of({"phi:2", "subnormal", "uniform", "type4", "graded:60", "offset:126"})) {
      expect_correctly_rounded<float>(
          {.m = 9, .n = 7, .k = 150, .distribution = distribution, .engine = "reference"}, scheme);
    }
  }
}

TEST(OzakiCr, IsCorrectlyRoundedForOverflowTiesAndTinyTerms) {
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  const std::vector<std::vector<std::pair<double, double>>> sums{
      {{huge, huge}, {huge, -huge}, {1, 1}},
      {{huge, 1}},
      {{huge, 1}, {huge, 0x1p-54}},  // the tie below 2^1024
      {{huge, 1}, {huge, 0x1p-53}},
      {{huge, huge}, {huge, huge}},
      {{tiny, 0.5}},
      {{tiny, 0.5}, {tiny, tiny}},
      {{tiny, 1.5}},
      {{1, 1}, {0x1p-53, 1}},
      {{1, 1}, {0x1p-53, 1}, {tiny, tiny}},
      {{1, 1}, {0x1p-53, 1}, {tiny, -tiny}},
      {{tiny, huge}, {-1, 0x1p-50}},
      {{1, 0x1p-60}, {0x1p-30, 1}},
      {{0, 1}},
  };
  for (const std::string& scheme : exact_schemes) {
    for (std::size_t s = 0; s < sums.size(); ++s) {
      GemmDataOf<double> data(GemmCase{.k = std::ssize(sums[s]), .scheme = scheme, .engine = "reference"});
      for (std::size_t p = 0; p < sums[s].size(); ++p) {
        const auto index = static_cast<std::int64_t>(p);
        data.a()(0, index) = sums[s][p].first;
        data.b()(index, 0) = sums[s][p].second;
      }
      const std::vector<double> expected = exactly(data);
      data.run_well();
      EXPECT_EQ(data.c()(0, 0), expected[0]) << scheme << " " << s;
    }
  }
}

// Complex products are real ones of twice the inner length; alpha and beta are complex.
TEST(OzakiCr, RoundsEachPartOfComplexElementsOnce) {
  using Element = std::complex<double>;
  const std::int64_t n = thorough ? 70 : 5;
  GemmCase test{.m = 200, .n = n, .k = 30, .op_a = KINTSUGI_OP_C, .beta = -0.75, .distribution = "phi:2"};
  test.alpha_im = 3;
  test.beta_im = 1e-3;
  test.engine = "reference";
  test.scheme = "superaccumulator";
  GemmDataOf<Element> exact(test);
  exact.run_well();
  for (const std::string scheme : {"ozaki-fp16:mode=cr", "ozaki-fp64:block=128"}) {
    test.scheme = scheme;
    GemmDataOf<Element> data(test);
    data.run_well();
    EXPECT_EQ(data.result(), exact.result()) << scheme;
  }
}

std::vector<std::uint64_t> bits_with(GemmCase test, const std::string& engine, const std::string& accumulator,
                                     int threads, std::int64_t limit) {
  test.engine = engine;
  test.accumulator = accumulator;
  test.threads = threads;
  test.workspace_limit = limit;
  GemmDataOf<double> data(test);
  data.run_well();
  return bits_of(data.result());
}

// All arithmetic is in integers, so engines, accumulators, threads and workspace limits give the same bits.
TEST(Ozaki, BitsAreTheSameOnEveryEngineAndLimit) {
  const std::int64_t n = thorough ? 140 : 20;
  for (const std::string scheme :
       a_part_of({"ozaki-fp16", "ozaki-fp64", "ozaki-fp16:mode=sp", "ozaki-fp16:mode=cr",
                  "ozaki-fp64:mode=dp", "ozaki-fp16:slices=4", "ozaki-fp16:block=150",
                  "ozaki-fp16:k-block=16", "ozaki-fp16:grid=sigma"})) {
    GemmCase test{.m = 170, .n = n, .k = 40, .distribution = "phi:1", .scheme = scheme};
    test.alpha = 1.25;
    test.beta = -0.5;
    const auto bits = bits_with(test, "reference", "", 1, 0);
    if (scheme == "ozaki-fp16" && thorough) {
      for (const char* accumulator : {"fp32", "v100", "a100", "h200-mma"})
        EXPECT_EQ(bits_with(test, "reference", accumulator, 2, 0), bits) << accumulator;
    }
    test.engine = "reference";
    test.threads = 2;  // the workspace depends on them
    GemmDataOf<double> data(test);
    const auto limit = static_cast<std::int64_t>(PlanOf(data).workspace()) - 1;
    const bool has_smaller = scheme != "ozaki-fp16:block=150";  // blocks of 85 x 70
    EXPECT_EQ(bits_with(test, "reference", "", 2, has_smaller ? limit : 0), bits)
        << scheme << ", limit " << limit;
    if (!has_cpu_engine()) continue;
    for (const int threads : {1, 2, 5}) EXPECT_EQ(bits_with(test, "cpu", "", threads, 0), bits) << scheme;
    test.engine = "cpu";
    test.threads = 1;
    GemmDataOf<double> on_cpu(test);
    const auto cpu_limit = static_cast<std::int64_t>(PlanOf(on_cpu).workspace()) - 1;
    EXPECT_EQ(bits_with(test, "cpu", "", 1, has_smaller ? cpu_limit : 0), bits) << scheme;
  }
}

// In CR mode k-blocks only change the order of an exact sum.
TEST(OzakiCr, KBlocksKeepTheBits) {
  const std::int64_t n = thorough ? 30 : 2;
  GemmCase test{.m = 20, .n = n, .k = 500, .distribution = "phi:2", .scheme = "ozaki-fp16:mode=cr"};
  const auto bits = bits_with(test, "reference", "", 1, 0);
  for (const char* block : {"1", "16", "100", "64"}) {
    test.scheme = std::string("ozaki-fp16:mode=cr:k-block=") + block;
    EXPECT_EQ(bits_with(test, "reference", "", 1, 0), bits) << block;
  }
}

// A is zero, so C becomes beta C.
TEST(Ozaki, ZeroOperandsGiveBetaC) {
  GemmDataOf<double> data(
      GemmCase{.m = 3, .n = 3, .k = 5, .beta = 2, .scheme = "ozaki-fp16", .engine = "reference"});
  std::vector<double> old = data.result();
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t p = 0; p < 5; ++p) data.a()(i, p) = 0;
  }
  data.run_well();
  for (std::size_t e = 0; e < old.size(); ++e) EXPECT_EQ(data.result()[e], 2 * old[e]);
}

TEST(Ozaki, PreparedOperandsKeepTheBits) {
  GemmCase test{
      .m = 20, .n = 15, .k = 90, .distribution = "phi:1", .scheme = "ozaki-fp16", .engine = "reference"};
  GemmDataOf<double> plain(test), prepared(test);
  plain.run_well();
  const PlanOf plan(prepared);
  kintsugi_prepared a = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, prepared.raw_a().data(), &a), KINTSUGI_SUCCESS);
  kintsugi_operands operands = prepared.operands();
  operands.a = nullptr;
  operands.prepared_a = a;
  EXPECT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  kintsugi_prepared_destroy(a);
  EXPECT_EQ(bits_of(plain.result()), bits_of(prepared.result()));
}

template <class T>
void expect_too_many(GemmCase test) {
  GemmDataOf<T> data(test);
  EXPECT_EQ(data.run(), KINTSUGI_CONTRACT_UNREACHABLE) << test.scheme << " " << test.distribution;
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("more than 32 slices of 8 bits"));
  for (const T x : data.result()) ASSERT_TRUE(is_poison(x)) << "C was touched";
}

TEST(Ozaki, TooManySlicesAreAnErrorBeforeCIsTouched) {
  GemmCase test{.m = 3,
                .n = 4,
                .k = 200,
                .distribution = "span:1500",
                .scheme = "ozaki-fp16:mode=cr",
                .engine = "reference"};
  expect_too_many<double>(test);
  test.distribution = "diagonal:1200";  // the small elements of A meet the large ones of B
  expect_too_many<double>(test);
  test.scheme = "ozaki-fp16";
  expect_too_many<double>(test);
}

TEST(Ozaki, WrongParametersAreNamed) {
  for (const std::string parameter :
       {"mode=fp64", "slices=0", "slices=33", "fast=yes", "block=64", "k-block=-1", "k-block=65537", "bits=3",
        "mode=cr:slices=4", "mode=cr:fast=off", "mode=dp:mode=sp"}) {
    GemmData data(
        GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "ozaki-fp16:" + parameter, .engine = "reference"});
    EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING) << parameter;
    EXPECT_THAT(kintsugi_last_error(), HasSubstr("does not take"));
  }
}

}  // namespace
}  // namespace kintsugi::test
