// Tests h2sgemm's parameter sb: given, computed from Eq. 6, lowered or refused where the operands require it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "schemes/program.hpp"
#include "tests/support/c_objects.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

double frobenius(const std::string& scheme, const std::string& distribution) {
  return frobenius_of({.m = 48,
                       .n = 40,
                       .k = 256,
                       .distribution = distribution,
                       .scheme = scheme,
                       .engine = "reference",
                       .accumulator = "fp32"});
}

TEST(Parameters, AreReadOnceAndGiveTheSameScheme) {
  const core::Scheme* scheme = core::find_scheme("h2sgemm:sb=6");
  ASSERT_NE(scheme, nullptr);
  EXPECT_EQ(scheme->name, "h2sgemm:sb=6");
  EXPECT_EQ(scheme->program.split_a.residual_exponent, 6);
  EXPECT_EQ(scheme->program.split_b.residual_exponent, 6);
  EXPECT_EQ(scheme->program.schedule.group_exponents[0], -6);
  EXPECT_EQ(scheme->program.schedule.group_exponents[2], 0);
  EXPECT_EQ(core::find_scheme("h2sgemm:sb=6"), scheme);
  EXPECT_EQ(core::find_scheme("h2sgemm")->program.split_a.residual_exponent, 12);
  EXPECT_EQ(core::find_scheme("nothing:sb=6"), nullptr);
}

TEST(Parameters, AreErrorsIfWrong) {
  for (const char* name : {"h2sgemm:sb=41", "h2sgemm:sb=-1", "h2sgemm:sb=x", "h2sgemm:sb", "h2sgemm:sb=1x",
                           "h2sgemm:bs=1", "fp16x3:sb=1"}) {
    GemmData data(GemmCase{.m = 2, .n = 2, .k = 2, .scheme = name, .engine = "reference"});
    EXPECT_EQ(data.run(), KINTSUGI_BAD_SETTING) << name;
    EXPECT_THAT(kintsugi_last_error(), HasSubstr("does not take")) << name;
  }
}

// h2sgemm Fig. 8: where exponents are low, sb = 12 gains one to two orders of magnitude over sb = 0,
// and sb = 6 lies between.
TEST(H2sgemm, ScalingGainsWhereExponentsAreLow) {
  const double unscaled = frobenius("h2sgemm:sb=0", "offset:-8");
  const double half = frobenius("h2sgemm:sb=6", "offset:-8");
  const double full = frobenius("h2sgemm", "offset:-8");
  EXPECT_GT(unscaled, 10 * full);
  EXPECT_GT(unscaled, half);
  EXPECT_GT(half, full);
}

// Eq. 6 keeps more bits of each element, but below 2^-14 the product of the residuals, which is left
// out, costs as much as that gains: it is never worse, and hardly better.
TEST(H2sgemm, Eq6IsNoWorseThanTheDefault) {
  for (const char* distribution : {"offset:4", "offset:-4", "offset:-13", "offset:-16", "offset:-20"}) {
    EXPECT_LE(frobenius("h2sgemm:sb=eq6", distribution), 1.02 * frobenius("h2sgemm", distribution))
        << distribution;
  }
}

TEST(H2sgemm, LargeMagnitudesAreCoveredOrRefused) {
  for (const std::string scheme : {"h2sgemm", "h2sgemm-element", "h2sgemm:sb=eq6"}) {
    for (const float x : {32784.0F, 32768.0F, 65519.0F, 65535.0F}) {
      GemmData data(GemmCase{.m = 1, .n = 1, .k = 1, .scheme = scheme, .engine = "reference"});
      data.a()(0, 0) = x;
      data.b()(0, 0) = 1;
      data.run_well();
      EXPECT_NEAR(data.c()(0, 0), x, x * 0x1p-21) << scheme;
    }
    GemmData data(GemmCase{.m = 1, .n = 1, .k = 1, .batch = 2, .scheme = scheme, .engine = "reference"});
    data.a(1)(0, 0) = 65536;
    EXPECT_EQ(data.run(), KINTSUGI_CONTRACT_UNREACHABLE);
    EXPECT_THAT(kintsugi_last_error(), HasSubstr("magnitudes below 2^16"));
    EXPECT_TRUE(is_poison(data.c(0)(0, 0)));
  }
}

// The default is fitted to the operands; a given sb is kept, or they are refused.
TEST(H2sgemm, GivenSbIsKeptOrRefused) {
  struct Case {
    int sb;
    int largest;  // largest exponent of operands that keep sb
  };
  for (const Case test : {Case{0, 15}, {10, 15}, {11, 14}, {12, 14}, {13, 13}, {26, 0}, {40, -14}}) {
    for (const std::string scheme : {"h2sgemm", "h2sgemm-element"}) {
      const std::string name = scheme + ":sb=" + std::to_string(test.sb);
      GemmData data(GemmCase{.m = 1, .n = 1, .k = 1, .scheme = name, .engine = "reference"});
      data.b()(0, 0) = 0x1p-20F;
      data.a()(0, 0) = std::ldexp(1.5F, test.largest);
      const Handle handle;
      ASSERT_EQ(data.run(handle), KINTSUGI_SUCCESS) << name << ": " << kintsugi_last_error();
      const json adapted = handle.report().at("adapted");  // null: nothing was fitted
      if (!adapted.is_null()) EXPECT_EQ(adapted.at("split_a").at("residual_exponent"), test.sb) << name;
      data.a()(0, 0) = std::ldexp(1.5F, test.largest + 1);
      EXPECT_EQ(data.run(handle), KINTSUGI_CONTRACT_UNREACHABLE) << name;
      EXPECT_THAT(kintsugi_last_error(),
                  HasSubstr(test.largest == 15 ? "magnitudes below 2^16"
                                               : "from 2^" + std::to_string(test.largest + 1) + " on"));
    }
  }
}

// A prepared operand was split with sb = 12; where the other one lowers it, it is split again.
TEST(H2sgemm, PreparedOperandsAreSplitAgainForALowerSb) {
  GemmData data(GemmCase{.m = 3, .n = 2, .k = 5, .scheme = "h2sgemm", .engine = "reference"});
  data.b()(0, 0) = 40000;
  const PlanOf plan(data);
  kintsugi_prepared a = nullptr;
  ASSERT_EQ(kintsugi_prepare(nullptr, plan.plan, KINTSUGI_A, data.raw_a().data(), &a), KINTSUGI_SUCCESS);
  data.run_well();
  const auto expected = bits_of(data.result());
  auto operands = data.operands();
  operands.a = nullptr;
  operands.prepared_a = a;
  ASSERT_EQ(kintsugi_plan_execute(nullptr, plan.plan, &operands), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_EQ(bits_of(data.result()), expected);
  kintsugi_prepared_destroy(a);
}

}  // namespace
}  // namespace kintsugi::test
