// Plans of products that take a step of Strassen's algorithm, over the fakes.
#include "fakes/device_plan.hpp"

namespace kintsugi::test {
namespace {

using testing::HasSubstr;

// A step of Strassen's algorithm has seven products of half the size a modulus. Candidates whose
// recombination does not take the step, prepared operands and a small workspace have one product a modulus.
TEST_F(DevicePlan, LargeFp64ProductsTakeAStepOfStrassensAlgorithm) {
  const auto set_size = [](kintsugi_problem& problem, std::int64_t size) {
    problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = size;
  };
  Call call(8, 8, 8, stream_);
  set_size(call.problem, 16384);
  call.problem.type_a = call.problem.type_b = call.problem.type_c = call.problem.type_scalar = KINTSUGI_F64;
  call.options.policy = "emulate";
  const auto program = [&](std::size_t candidate) {
    return planned(call).at("candidates").at(candidate).at("program");
  };
  EXPECT_EQ(program(0).at("products"), 7 * 15);
  EXPECT_EQ(program(0).at("schedule").at("strassen"), true);
  EXPECT_EQ(program(0).at("split_a").at("slices"), 7 * 15);
  EXPECT_EQ(program(1).at("products"), 17);
  EXPECT_EQ(program(1).at("schedule").at("strassen"), false);
  const json whole = planned(call);
  EXPECT_THAT(whole.at("words").dump(), HasSubstr("seven of half the size a modulus"));
  EXPECT_THAT(whole.at("words").dump(), HasSubstr("residues modulo 15 numbers"));
  call.options.workspace_limit = whole.at("workspace_bytes").get<std::int64_t>() - 1;
  EXPECT_EQ(program(0).at("products"), 15);
  call.options.workspace_limit = 0;
  call.problem.prepared_b = 1;
  EXPECT_EQ(program(0).at("products"), 15);
  call.problem.prepared_b = 0;
  call.problem.lda = 16385;
  EXPECT_EQ(program(0).at("products"), 15) << "lines that are not aligned";
  set_size(call.problem, 2048);
  EXPECT_EQ(program(0).at("products"), 15) << "bytes take more time than products save";
}

}  // namespace
}  // namespace kintsugi::test
