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
  EXPECT_EQ(program(1).at("products"), 16) << "candidates that share kernels do not take the step";
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

// Later calls use prepared operands without Strassen's step.
TEST_F(DevicePlan, OperandsArePreparedWithoutStrassensStep) {
  Call call(8, 8, 8, stream_);
  kintsugi_problem& problem = call.problem;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = 16384;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
  call.options.policy = "emulate";
  ASSERT_EQ(planned(call).at("candidates").at(0).at("program").at("schedule").at("strassen"), true);
  kintsugi_prepared prepared = nullptr;
  ASSERT_EQ(kintsugi_prepare_borrowed(nullptr, call.plan, KINTSUGI_B, call.operands.b, &prepared),
            KINTSUGI_SUCCESS)
      << kintsugi_last_error();
  EXPECT_TRUE(events_with("cuLaunchKernel split_strassen").empty());
  EXPECT_FALSE(events_with("cuLaunchKernel split_").empty());
  kintsugi_prepared_destroy(prepared);
}

// Operands that are split for Strassen's step need more memory. If there is less, products go without it.
TEST_F(DevicePlan, ProductsGoWithoutStrassensStepIfMemoryIsFull) {
  Call call(8, 8, 8, stream_);
  kintsugi_problem& problem = call.problem;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = 16384;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = KINTSUGI_F64;
  const double scalars[] = {1, 0};
  call.operands.alpha = scalars;
  call.operands.beta = scalars + 1;
  call.options.policy = "emulate";
  call.make_plan();
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_FALSE(events_with("cuLaunchKernel split_strassen").empty());
  EXPECT_FALSE(events_with("cuLaunchKernel strassen_residues_f64").empty());
  const FakeVariable steered("FAKE_CUDA_FAIL_ALLOCATION", "1");
  ASSERT_EQ(call.execute(), KINTSUGI_SUCCESS) << kintsugi_last_error();
  EXPECT_TRUE(events_with("cuLaunchKernel split_strassen").empty());
  EXPECT_FALSE(events_with("cuLaunchKernel digit_residues_f64").empty());
  const auto allocations = events_with("cuMemAllocFromPoolAsync");
  ASSERT_EQ(allocations.size(), 2U);
  const auto bytes = [](const std::string& event) { return std::stoll(event.substr(event.find(' '))); };
  EXPECT_LT(bytes(allocations[1]), bytes(allocations[0]));
}

}  // namespace
}  // namespace kintsugi::test
