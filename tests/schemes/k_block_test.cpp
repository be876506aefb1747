// Tests the parameter `block` of schemes whose sums are added outside the engine.
#include "schemes/program.hpp"

#include <gtest/gtest.h>

#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "engines/registry.hpp"
#include "tests/support/c_objects.hpp"
#include "tests/support/gemm_case.hpp"
#include "tests/support/scheme_bound.hpp"

namespace kintsugi::core {
namespace {

using test::GemmCase;
using test::GemmData;

struct BlockCase {
  const char* scheme;
  const Engine* engine;
};

std::vector<BlockCase> block_cases() {
  std::vector<BlockCase> cases;
  for (const char* scheme : {"fp16x3", "fp16x3-wide"}) {
    for (const Engine* engine : all_engines()) {
      if (engine->host() != nullptr && engine->unavailable_reason().empty())
        cases.push_back({scheme, engine});
    }
  }
  return cases;
}

class Blocks : public testing::TestWithParam<BlockCase> {
 protected:
  static GemmCase product(const std::string& scheme, std::int64_t k = 700) {
    return {.m = 9,
            .n = 7,
            .k = k,
            .seed = 5,
            .scheme = scheme,
            .engine = std::string(GetParam().engine->name()),
            .accumulator = "fp32"};
  }
  static std::vector<std::uint32_t> bits(const std::string& scheme, std::int64_t k = 700) {
    GemmData data(product(scheme, k));
    data.run_well();
    return test::bits_of(data.result());
  }
  static std::string with_block(int block) { return fmt::format("{}:block={}", GetParam().scheme, block); }
};

TEST_P(Blocks, SixtyFourHasTheBitsOfTheSchemeWithoutTheParameter) {
  EXPECT_EQ(bits(with_block(64), 1025), bits(GetParam().scheme, 1025));
  EXPECT_NE(bits(with_block(128), 1025), bits(GetParam().scheme, 1025));
}

TEST_P(Blocks, LongerThanKHaveTheSameBits) { EXPECT_EQ(bits(with_block(704)), bits(with_block(65536))); }

TEST_P(Blocks, AreWithinTheirBounds) {
  for (const int block : {64, 128, 640, 1024}) {
    for (const char* distribution :
         {"uniform", "uniform01", "phi:2", "span:16", "span:29", "cancellation:20"}) {
      GemmCase test = product(with_block(block));
      test.distribution = distribution;
      GemmData data(test);
      data.run_well();
      const test::Allowance<float> allowed(*find_scheme(test.scheme), *GetParam().engine,
                                           test::constant(data.a()), test::constant(data.b()));
      for (const auto& element : test::element_errors(data))
        ASSERT_LE(std::abs(element.error), allowed(element)) << test.scheme << ", " << distribution;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Blocks, testing::ValuesIn(block_cases()), [](const auto& test) {
  std::string name = fmt::format("{}_{}", test.param.scheme, test.param.engine->name());
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(BlockParameter, TakesMultiplesOf64) {
  EXPECT_EQ(find_scheme("fp16x3:block=65536")->program.schedule.k_block, 65536);
  for (const char* wrong :
       {"fp16x3:block=0", "fp16x3:block=32", "fp16x3:block=100", "fp16x3-wide:block=65600",
        "fp16x3:block=", "fp16x3:blocks=64", "bf16x6:block=65"}) {
    try {
      find_scheme(wrong);
      ADD_FAILURE() << wrong << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::bad_setting) << wrong;
    }
  }
}

// If the matrix unit truncates, a scheme's default k-block depends on the number of elements of C; a named
// one does not.
TEST(BlockParameter, IsNotShortened) {
  const auto bits = [](const std::string& scheme, std::int64_t m) {
    GemmData data({.m = m, .n = 8, .k = 600, .scheme = scheme, .engine = "reference", .accumulator = "h200"});
    data.run_well();
    return test::bits_of(data.result());
  };
  for (const std::string scheme : {"fp16x3", "fp16x3-wide", "bf16x6"})
    EXPECT_NE(bits(scheme + ":block=64", 8), bits(scheme, 8)) << scheme;
}

TEST(BlockParameter, IsTheKBlockOfThePlan) {
  const auto block = [](const std::string& scheme, std::int64_t n, std::int64_t k) {
    const GemmData data(
        {.m = n, .n = n, .k = k, .scheme = scheme, .engine = "reference", .accumulator = "h200"});
    const auto plan = test::PlanOf(data).describe();
    const auto& schedule = plan.at("candidates").front().at("program").at("schedule");
    EXPECT_EQ(schedule.at("most_halvings"), 0);
    return schedule.at("k_block").get<int>();
  };
  EXPECT_EQ(block("fp16x3", 512, 512), 16);
  EXPECT_EQ(block("fp16x3", 1024, 512), 32);
  EXPECT_EQ(block("fp16x3", 2048, 512), 64);
  EXPECT_EQ(block("fp16x3", 2048, 128), 32);
  EXPECT_EQ(block("bf16x6", 512, 512), 32);
  EXPECT_EQ(block("fp16x3:block=64", 512, 512), 64);
}

}  // namespace
}  // namespace kintsugi::core
