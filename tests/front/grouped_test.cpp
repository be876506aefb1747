// Tests kintsugi_gemm_grouped on host matrices: random groups have the bits of single calls, and errors name
// the group.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "tests/support/gemm_case.hpp"

namespace kintsugi::test {
namespace {

GemmCase drawn_case(std::mt19937_64& random, const char* scheme) {
  const auto below = [&](int limit) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit));
  };
  return {.m = below(40),
          .n = below(40),
          .k = below(200),
          .op_a = static_cast<kintsugi_op>(below(3)),
          .op_b = static_cast<kintsugi_op>(below(3)),
          .layout = static_cast<kintsugi_layout>(below(2)),
          .pad_a = below(3),
          .pad_b = below(3),
          .pad_c = below(3),
          .batch = below(3),
          .alpha = below(4) == 0 ? 0 : 1.5,
          .beta = below(2) == 0 ? 0 : -0.5,
          .seed = random() % 1000,
          .scheme = scheme};
}

template <class T>
void expect_bits_of_single_calls(std::mt19937_64& random, const char* scheme) {
  std::vector<std::unique_ptr<GemmDataOf<T>>> groups;
  std::vector<kintsugi_problem> problems;
  std::vector<kintsugi_operands> operands;
  for (std::uint64_t g = 0; g < 1 + random() % 6; ++g) {
    groups.push_back(std::make_unique<GemmDataOf<T>>(drawn_case(random, scheme)));
    problems.push_back(groups.back()->problem());
    operands.push_back(groups.back()->operands());
  }
  const kintsugi_options options = groups.front()->options();
  ASSERT_EQ(kintsugi_gemm_grouped(nullptr, std::ssize(problems), problems.data(), &options, operands.data()),
            KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  for (const auto& group : groups) {
    GemmDataOf<T> alone(group->test());
    alone.run_well();
    EXPECT_EQ(bits_of(group->raw_c()), bits_of(alone.raw_c()));
  }
}

TEST(Grouped, RandomGroupsHaveTheBitsOfSingleCalls) {
  std::mt19937_64 random(1);
  for (int draw = 0; draw < 60; ++draw) {
    expect_bits_of_single_calls<float>(random, draw % 2 == 0 ? "bf16x6-direct" : "fp16x3");
    expect_bits_of_single_calls<double>(random, "ozaki2");
  }
}

TEST(Grouped, ErrorsNameTheGroupAndLeaveAllOfCUnchanged) {
  GemmDataOf<float> first({.m = 3, .n = 4, .k = 5});
  GemmDataOf<float> second({.m = 3, .n = 4, .k = 5});
  kintsugi_problem problems[] = {first.problem(), second.problem()};
  kintsugi_operands operands[] = {first.operands(), second.operands()};
  const auto before = bits_of(first.raw_c());
  const auto expect = [&](const std::string& text) {
    EXPECT_EQ(kintsugi_gemm_grouped(nullptr, 2, problems, nullptr, operands), KINTSUGI_INVALID_ARGUMENT);
    EXPECT_NE(std::string(kintsugi_last_error()).find(text), std::string::npos) << kintsugi_last_error();
    EXPECT_EQ(bits_of(first.raw_c()), before);
  };
  problems[1].k = -2;
  expect("group 1: k = -2");
  problems[1] = second.problem();
  operands[1].a = nullptr;
  expect("group 1: a is null");
  operands[1] = second.operands();
  problems[0].struct_size = 3;
  expect("group 0: ");
}

}  // namespace
}  // namespace kintsugi::test
