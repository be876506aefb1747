// Tests split-n: parameters, subsets of products, and as many slices as hold all bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

template <class T = float>
double frobenius(const std::string& scheme, const std::string& distribution, std::int64_t k = 256) {
  return frobenius_of<T>({.m = 32,
                          .n = 24,
                          .k = k,
                          .distribution = distribution,
                          .scheme = scheme,
                          .engine = "reference",
                          .accumulator = "fp32"});
}

std::string terms_of(const std::string& name) {
  std::string text;
  for (const core::Term& term : core::find_scheme(name)->program.schedule.terms)
    text += std::to_string(term.a) + std::to_string(term.b) + " ";
  return text;
}

TEST(SplitN, ParametersMakeTheProgram) {
  const core::Program& program = core::find_scheme("split-n:format=bf16:a=3:b=2:scale=8:block=64")->program;
  EXPECT_EQ(program.split_a.format->name, std::string("bf16"));
  EXPECT_EQ(program.split_a.slices, 3);
  EXPECT_EQ(program.split_b.slices, 2);
  EXPECT_EQ(program.split_b.residual_exponent, 8);
  EXPECT_EQ(program.schedule.k_block, 64);
  EXPECT_EQ(program.schedule.groups, 6);
  EXPECT_EQ(program.schedule.group_exponents[5], -24);
  EXPECT_EQ(terms_of("split-n:a=3:b=2"), "00 01 10 11 20 21 ");
  EXPECT_EQ(terms_of("split-n:terms=3"), "00 01 10 ");
  EXPECT_EQ(terms_of("split-n:terms=3:a=1:b=4"), "00 01 02 ");
  EXPECT_EQ(terms_of("split-n:terms=a1b1+a0b0"), "11 00 ");
  EXPECT_EQ(core::find_scheme("split-n:a=8:b=8")->program.schedule.groups, 64);
}

TEST(SplitN, WrongParametersAreNamed) {
  for (const std::string parameter :
       {"a=0", "a=9", "b=x", "terms=0", "terms=5", "terms=a0b2", "terms=a0b0+a0b0", "terms=a0b",
        "terms=", "scale=41", "block=-1", "format=int8", "format=fp64", "format=fp17", "slices=2", "a"}) {
    GemmData data(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = "split-n:" + parameter, .engine = "reference"});
    EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING) << parameter;
    EXPECT_THAT(kintsugi_last_error(),
                HasSubstr("does not take \"" + parameter.substr(0, parameter.find('='))));
  }
}

// Every product has an accumulator of its own, as in h2sgemm: two slices and three products give its sums.
TEST(SplitN, HasTheBitsOfH2sgemmWithItsParameters) {
  for (const char* accumulator : {"fp32", "h200", "a100"}) {
    GemmCase test{.m = 9, .n = 7, .k = 100, .engine = "reference", .accumulator = accumulator};
    test.scheme = "h2sgemm";
    GemmData h2sgemm(test);
    h2sgemm.run_well();
    test.scheme = "split-n:scale=12:terms=a1b0+a0b1+a0b0";
    GemmData split_n(test);
    split_n.run_well();
    EXPECT_EQ(bits_of(h2sgemm.result()), bits_of(split_n.result()));
  }
}

TEST(SplitN, MoreSlicesAndTermsLowerTheError) {
  const std::string base = "split-n:scale=11:block=16";
  EXPECT_GT(frobenius(base + ":terms=1", "uniform"), 50 * frobenius(base + ":terms=3", "uniform"));
  EXPECT_GT(frobenius(base + ":a=1", "uniform"), 50 * frobenius(base, "uniform"));
  EXPECT_GT(frobenius(base + ":terms=2", "uniform"), 50 * frobenius(base + ":terms=3", "uniform"));
}

// Enough slices hold all bits of an element, so at k = 1 only the rounding of the result is left.
TEST(SplitN, EnoughSlicesAreExact) {
  EXPECT_LE(frobenius("split-n:format=fp8_e4m3:a=6:b=6:scale=5", "uniform", 1), 0x1p-23);
  EXPECT_LE(frobenius("split-n:format=bf16:a=3:b=3", "uniform", 1), 0x1p-24);
  EXPECT_LE(frobenius("split-n:format=fp32:a=1:b=1", "uniform", 1), 0x1p-24);
}

// FP64 operands: slices hold their bits, and fp32 sums of products of 24 bits do not.
TEST(SplitN, DoublesAreLimitedByTheSumsInFp32) {
  const double fp16 = frobenius<double>("split-n:a=5:b=5:scale=11", "uniform", 1);
  const double fp32 = frobenius<double>("split-n:format=fp32:a=3:b=3", "uniform", 1);
  EXPECT_LT(fp16, 0x1p-48);  // products of 11 bits are exact in fp32
  EXPECT_GT(fp32, 0x1p-30);
  EXPECT_LT(fp32, 0x1p-23);
  EXPECT_GT(frobenius<double>("split-n:a=5:b=5:scale=11", "uniform", 64), 0x1p-30);
}

// Residuals scaled by more bits than a slice has overflow before the elements do: no bound is promised there.
TEST(SplitN, ResidualsThatMayOverflowHaveNoWindow) {
  const core::SplitRule& rule = core::find_scheme("split-n:format=fp8_e5m2:scale=8")->program.split_a;
  EXPECT_FALSE(core::can_overflow(rule, {.dynamic_range = 3, .largest = 10, .smallest = 7}));
  EXPECT_TRUE(core::can_overflow(rule, {.dynamic_range = 3, .largest = 11, .smallest = 8}));
  EXPECT_FALSE(core::in_window(rule, {.dynamic_range = 3, .largest = 11, .smallest = 8}));
  // p = 3 bits: the residual of an element below 2^11 is at most 2^7, times 2^8 the format's largest binade.
  GemmData data(
      GemmCase{.m = 1, .n = 1, .k = 1, .scheme = "split-n:format=fp8_e5m2:scale=8", .engine = "reference"});
  data.b()(0, 0) = 1;
  data.a()(0, 0) = 2047.0F - 127.0F;
  data.run_well();
  EXPECT_TRUE(std::isfinite(data.c()(0, 0)));
  data.a()(0, 0) = 4095.0F - 255.0F;
  EXPECT_EQ(data.run(), KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_THAT(kintsugi_last_error(), HasSubstr("magnitudes of A reach 2^11"));
}

// Residuals of elements that are too small for a normal slice, and fp32 sums that grow with the scale or with
// FP64's range, give errors instead of infinities too.
TEST(SplitN, PossibleOverflowIsAnError) {
  const auto status = [](const std::string& scheme, const std::string& distribution, auto type) {
    GemmDataOf<decltype(type)> data(GemmCase{
        .m = 4, .n = 4, .k = 4, .distribution = distribution, .scheme = scheme, .engine = "reference"});
    const auto result = data.run();
    if (result == KINTSUGI_SUCCESS) {
      for (const auto x : data.result()) EXPECT_TRUE(std::isfinite(x)) << scheme;
    }
    return result;
  };
  EXPECT_EQ(status("split-n:a=3:b=1:scale=28", "offset:-17", 1.0F), KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(status("split-n:format=bf16:a=3:b=3:scale=40", "offset:4", 1.0F), KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(status("split-n:format=bf16:a=7:b=7:scale=27:block=64", "uniform", 1.0),
            KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(status("split-n:format=fp32", "power-of-two:120", 1.0), KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(status("split-n:format=bf16:a=3:b=3", "power-of-two:127", 1.0F), KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(status("split-n:a=5:b=5", "power-of-two:900", 1.0), KINTSUGI_CONTRACT_UNREACHABLE);
  EXPECT_EQ(status("split-n:format=bf16:a=3:b=3:scale=8", "offset:50", 1.0F), KINTSUGI_SUCCESS);
  EXPECT_EQ(status("split-n:format=fp32", "power-of-two:60", 1.0), KINTSUGI_SUCCESS);
  EXPECT_EQ(status("split-n:format=fp32", "power-of-two:-100", 1.0), KINTSUGI_SUCCESS);
}

}  // namespace
}  // namespace kintsugi::test
