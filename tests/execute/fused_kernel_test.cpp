// Tests the rule by which kernels enter plans: a toy kernel, added to the reference engine, replaces the
// steps that it covers, and computes C in their place.
#include "engines/fused_kernel.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "planner/steps.hpp"

namespace kintsugi::core {
namespace {

constexpr std::size_t toy_scratch_bytes = 3 * 256;
int toy_runs = 0;

// Takes FP32 products by two slices of fp16.
bool takes(const FusedProblem& problem) {
  return problem.type == ElementType::f32 && problem.weighted && problem.format() == FormatId::fp16 &&
         problem.split_a.slices == 2 && problem.split_b.slices == 2;
}

void run(const FusedProduct<float>& product) {
  ++toy_runs;
  for (std::size_t i = 0; i < toy_scratch_bytes; ++i) product.scratch[i] = std::byte{0xee};
  for (std::int64_t j = 0; j < product.c.columns; ++j) {
    for (std::int64_t i = 0; i < product.c.rows; ++i) {
      double sum = 0;
      for (std::int64_t p = 0; p < product.a.columns; ++p)
        sum += static_cast<double>(product.a(i, p)) * static_cast<double>(product.b(j, p));
      const float before = product.beta == 0 ? 0 : product.beta * product.c(i, j);
      product.c(i, j) = static_cast<float>(product.alpha * sum) + before;
    }
  }
}

constexpr std::array toy_steps{StepKind::split, StepKind::multiply, StepKind::recombine};
constexpr std::array toy_kernels{
    FusedKernel{.name = "toy",
                .steps = toy_steps,
                .takes = takes,
                .scratch_bytes = [](const FusedProblem&, int) { return toy_scratch_bytes; },
                .run_f32 = run}};

// The reference engine with the toy kernel, or other kernels.
class ToyEngine final : public HostEngine {
 public:
  explicit ToyEngine(std::span<const FusedKernel> kernels = toy_kernels) : kernels_(kernels) {}
  int multiplications() const { return multiplications_; }

  std::string_view name() const override { return "toy"; }
  std::string_view summary() const override { return reference_.summary(); }
  std::int64_t largest_size() const override { return reference_.largest_size(); }
  std::string unavailable_reason() const override { return {}; }
  std::string details() const override { return reference_.details(); }
  std::span<const Accumulator> accumulators(FormatId format) const override {
    return reference_.accumulators(format);
  }
  SliceStorage slice_storage(FormatId format) const override { return reference_.slice_storage(format); }
  bool reduces_sums_modulo() const override { return reference_.reduces_sums_modulo(); }
  bool multiplies_tiles() const override { return reference_.multiplies_tiles(); }
  bool native_order_is_fixed() const override { return reference_.native_order_is_fixed(); }
  std::span<const FusedKernel> fused_kernels() const override { return kernels_; }
  double relative_rate(FormatId format) const override { return reference_.relative_rate(format); }

  std::size_t scratch_bytes(const Schedule& schedule, FormatId format, std::int64_t k,
                            int threads) const override {
    return reference_.host()->scratch_bytes(schedule, format, k, threads);
  }
  void multiply(const Multiplication& multiplication) const override {
    ++multiplications_;
    reference_.host()->multiply(multiplication);
  }
  void native(const NativeProduct<float>& product) const override { reference_.host()->native(product); }
  void native(const NativeProduct<double>& product) const override { reference_.host()->native(product); }
  void native(const NativeProduct<std::complex<float>>& product) const override {
    reference_.host()->native(product);
  }
  void native(const NativeProduct<std::complex<double>>& product) const override {
    reference_.host()->native(product);
  }
  void native(const NativeProduct<DoubleDouble>& product) const override {
    reference_.host()->native(product);
  }

 private:
  std::span<const FusedKernel> kernels_;
  const Engine& reference_ = *find_engine("reference");
  mutable int multiplications_ = 0;
};

Problem problem_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  Problem problem;
  problem.m = problem.ldc = problem.lda = m;
  problem.n = n;
  problem.k = problem.ldb = k;
  return problem;
}

Plan plan_of(const ToyEngine& engine, const Problem& problem, const char* scheme) {
  SettingLayer call;
  call.set(find_setting("scheme"), scheme, "test");
  return make_plan_on(problem, Settings(call, {}, {}, {}), engine);
}

int count(const Plan& plan, StepKind kind) {
  return static_cast<int>(std::ranges::count(plan.steps, kind, &Step::kind));
}

TEST(FusedKernels, ReplaceTheStepsThatTheyCover) {
  const ToyEngine engine;
  const Plan fused = plan_of(engine, problem_of(300, 200, 100), "fp16x3");
  EXPECT_EQ(count(fused, StepKind::fused), 1);
  EXPECT_EQ(count(fused, StepKind::split), 0);
  EXPECT_EQ(count(fused, StepKind::multiply), 0);
  EXPECT_EQ(count(fused, StepKind::recombine), 0);
  const Plan other = plan_of(engine, problem_of(300, 200, 100), "bf16x6");  // the kernel does not take it
  EXPECT_EQ(count(other, StepKind::fused), 0);
  EXPECT_EQ(count(other, StepKind::recombine), 1);
  // The workspace has ranges and the kernel's scratch, and no slices.
  EXPECT_EQ(fused.workspace_bytes, aligned_size(300 * sizeof(VectorRange)) +
                                       aligned_size(200 * sizeof(VectorRange)) + toy_scratch_bytes);
  EXPECT_EQ(step_lines(fused).at(4), "    toy fp16x3");
}

// A kernel that takes products which it cannot compute must not be ignored.
TEST(FusedKernels, WithoutTheirFunctionsOrStepsAreRefused) {
  const auto expect_refused = [](const FusedKernel& kernel) {
    const std::array kernels{kernel};
    const ToyEngine engine(kernels);
    try {
      plan_of(engine, problem_of(30, 20, 10), "fp16x3");
      ADD_FAILURE() << "a plan was made";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::internal);
      EXPECT_NE(std::string(error.what()).find("the fused kernel toy of the engine toy takes fp32"),
                std::string::npos)
          << error.what();
    }
  };
  static constexpr std::array backwards{StepKind::recombine, StepKind::multiply, StepKind::split};
  static constexpr std::array products{StepKind::multiply, StepKind::recombine};
  FusedKernel kernel = toy_kernels[0];
  kernel.run_f32 = nullptr;
  expect_refused(kernel);
  kernel = toy_kernels[0];
  kernel.scratch_bytes = nullptr;
  expect_refused(kernel);
  kernel = toy_kernels[0];
  kernel.steps = backwards;
  expect_refused(kernel);
  kernel.steps = products;
  expect_refused(kernel);
}

TEST(FusedKernels, ComputeCInPlaceOfTheSteps) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::int64_t most) { return 1 + static_cast<std::int64_t>(random() % most); };
  for (int number = 0; number < 50; ++number) {
    const ToyEngine engine;
    const std::int64_t m = draw(300), n = draw(300), k = draw(60);
    const Plan plan = plan_of(engine, problem_of(m, n, k), "fp16x3");
    std::vector<float> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n));
    std::vector<float> c(static_cast<std::size_t>(m * n), std::numeric_limits<float>::quiet_NaN());
    for (auto* matrix : {&a, &b}) {
      for (float& x : *matrix) x = normal(random);
    }
    const bool has_special = number % 5 == 0;
    if (has_special) a[0] = std::numeric_limits<float>::infinity();  // of row 0
    const Operands operands{.alpha = 2, .beta = 0, .a = a.data(), .b = b.data(), .c = c.data()};
    toy_runs = 0;
    Report report;
    execute(plan, operands, report);
    EXPECT_EQ(engine.multiplications(), 0);
    EXPECT_EQ(toy_runs, 1);
    EXPECT_EQ(report.items_with_special_values, has_special ? 1 : 0);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = has_special ? 1 : 0; i < m; ++i) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p)
          sum += static_cast<double>(a[static_cast<std::size_t>(i + p * m)]) *
                 static_cast<double>(b[static_cast<std::size_t>(p + j * k)]);
        ASSERT_EQ(c[static_cast<std::size_t>(i + j * m)], static_cast<float>(2 * sum)) << number;
      }
      if (has_special) ASSERT_FALSE(std::isfinite(c[static_cast<std::size_t>(j * m)])) << number;
    }
  }
}

}  // namespace
}  // namespace kintsugi::core
