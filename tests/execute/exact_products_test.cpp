// Compares exact and reproducible products of the engine cpu, whose fused kernel checks elements, with the
// superaccumulator and the reference engine, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "engines/fused_kernel.hpp"
#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "planner/steps.hpp"
#include "recombine/recombine.hpp"
#include "split/norms.hpp"
#include "split/ranges.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/random_product.hpp"

namespace kintsugi::core {
namespace {

// True if the engine has a fused kernel for all candidates that multiply residues.
bool is_checked_by_kernels(const Plan& plan) {
  return std::ranges::all_of(plan.candidates, [&](const Candidate& candidate) {
    return !candidate.checked || candidate.program.recombination == Recombination::exact_sums ||
           fused_checked_kernel(plan, candidate) != nullptr;
  });
}

template <class T>
void expect_correct_rounding() {
  const std::uint64_t cases = test::thorough ? 150 : 15;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const RandomProduct<T> each(seed);
    const Plan plan = each.plan("cpu", "accuracy", "exact");
    if (!is_checked_by_kernels(plan)) GTEST_SKIP() << "this CPU has no kernel that checks elements";
    const std::vector<T> expected = each.run(each.plan("reference", "scheme", "superaccumulator"));
    ASSERT_TRUE(have_same_bits(expected, each.run(plan)))
        << "case " << seed << ": " << each.problem.m << " x " << each.problem.n << " x " << each.problem.k;
  }
}

TEST(ExactProducts, OfFp64AreCorrectlyRounded) { expect_correct_rounding<double>(); }
TEST(ExactProducts, OfFp32AreCorrectlyRounded) { expect_correct_rounding<float>(); }

template <class T>
void expect_reproducible_bits() {
  const std::uint64_t cases = test::thorough ? 60 : 10;
  for (std::uint64_t seed = 1000; seed < 1000 + cases; ++seed) {
    const RandomProduct<T> each(seed);
    ASSERT_TRUE(have_same_bits(each.run(each.plan("reference", "accuracy", "reproducible")),
                               each.run(each.plan("cpu", "accuracy", "reproducible"))))
        << "case " << seed;
  }
}

TEST(ReproducibleProducts, OfFp64HaveTheBitsOfTheReference) { expect_reproducible_bits<double>(); }
TEST(ReproducibleProducts, OfFp32HaveTheBitsOfTheReference) { expect_reproducible_bits<float>(); }

// A workspace limit divides C into blocks.
TEST(ExactProducts, InBlocksOfCAreCorrectlyRounded) {
  RandomProduct<double> each(5);
  each.problem = {.m = 300, .n = 270, .k = 200, .lda = 300, .ldb = 200, .ldc = 300, .type = OperandType::f64};
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (auto* matrix : {&each.a, &each.b, &each.c}) {
    matrix->resize(300 * 300);
    for (double& x : *matrix) x = normal(random) * std::exp(normal(random));
  }
  SettingLayer call;
  const std::size_t whole = each.plan("cpu", "accuracy", "exact").workspace_bytes;
  call.set(find_setting("accuracy"), "exact", "test");
  call.set(find_setting("threads"), "1", "test");  // more threads need more memory
  call.set(find_setting("workspace_limit"), std::to_string(whole / 2).c_str(), "test");
  const Plan blocks = make_plan_on(each.problem, Settings(call, {}, {}, {}), *find_engine("cpu"));
  EXPECT_LT(blocks.workspace_bytes, whole);
  EXPECT_TRUE(
      have_same_bits(each.run(each.plan("reference", "scheme", "superaccumulator")), each.run(blocks)));
}

// A product of the kernel with a check, of a candidate that leaves some elements open.
class CheckedKernel : public ::testing::TestWithParam<Layout> {
 protected:
  static constexpr std::int64_t m = 75, n = 70, k = 300;

  void SetUp() override {
    problem_ = {.m = m, .n = n, .k = k, .lda = m, .ldb = k, .ldc = ld(), .type = OperandType::f64};
    problem_.layout = Layout::column_major;
    SettingLayer call;
    call.set(find_setting("accuracy"), "exact", "test");
    plan_ = make_plan_on(problem_, Settings(call, {}, {}, {}), *find_engine("cpu"));
    if (!is_checked_by_kernels(plan_)) GTEST_SKIP() << "this CPU has no kernel that checks elements";
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (auto* matrix : {&a_, &b_}) {
      for (double& x : *matrix) x = normal(random) * std::exp(2 * normal(random));
    }
    for (std::uint8_t& state : states_) state = random() % 4 == 0 ? ElementCheck::closed : ElementCheck::open;
    a_[7] = std::numeric_limits<double>::infinity();
  }

  static std::int64_t ld() { return GetParam() == Layout::row_major ? n : m; }

  // Returns the number of open elements.
  std::int64_t run(bool writes) {
    const Candidate& candidate = *(plan_.checked_candidate() + 1);
    const SplitRule& rule = candidate.program.split_a;
    const FusedProblem fused = fused_problem(plan_, candidate, candidate.program);
    const FusedKernel& kernel = *fused_checked_kernel(plan_, candidate);
    const MatrixView<const double> a{a_.data(), m, k, 1, m};
    const MatrixView<const double> b{b_.data(), n, k, k, 1};
    std::vector<VectorRange> rows(m), columns(n);
    std::vector<RoundingBound> row_bounds(m), column_bounds(n);
    find_ranges(a, rule, std::span(rows), 1);
    find_ranges(b, rule, std::span(columns), 1);
    find_rounding_bounds(a, rows, {}, std::span(row_bounds), 1);
    find_rounding_bounds(b, columns, {}, std::span(column_bounds), 1);
    const ElementCheck elements{.rows = row_bounds,
                                .columns = column_bounds,
                                .largest_a = power_of_two(rule.top_exponent + 1),
                                .largest_b = power_of_two(rule.top_exponent + 1),
                                .demand = {.coefficient = 0, .unit_roundoff = 0x1p-53}};
    std::atomic<std::int64_t> open = 0;
    const FusedCheck check{.elements = elements, .states = states_.data(), .writes = writes, .open = open};
    const std::size_t bytes = kernel.scratch_bytes(fused, 1);
    std::vector<std::byte> memory(bytes + 256);
    void* scratch = memory.data();
    std::size_t space = memory.size();
    kernel.run_f64(
        FusedProduct<double>{.problem = fused,
                             .a = a,
                             .b = b,
                             .rows = rows,
                             .columns = columns,
                             .c = matrix_view(c_.data(), GetParam(), Op::none, m, n, ld()),
                             .alpha = 1,
                             .beta = 1,
                             .scratch = static_cast<std::byte*>(std::align(256, bytes, scratch, space)),
                             .threads = 1,
                             .check = &check});
    return open;
  }

  double& c(std::int64_t i, std::int64_t j) {
    return c_[static_cast<std::size_t>(GetParam() == Layout::row_major ? i * n + j : i + j * m)];
  }

  Problem problem_;
  Plan plan_;
  std::vector<double> a_ = std::vector<double>(m * k), b_ = std::vector<double>(k * n),
                      c_ = std::vector<double>(m * n, 0.125);
  std::vector<std::uint8_t> states_ = std::vector<std::uint8_t>(m * n);
};

TEST_P(CheckedKernel, ComputesAndClosesOnlyOpenElements) {
  const std::vector<std::uint8_t> before = states_;
  const std::int64_t open = run(/*writes=*/true);
  EXPECT_GT(open, 0);
  EXPECT_LT(open, m * n / 4);
  EXPECT_EQ(std::ranges::count(states_, ElementCheck::open), open);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i) {
      const auto state = static_cast<std::size_t>(i + j * m);
      const bool is_written = before[state] == ElementCheck::open && states_[state] == ElementCheck::closed;
      ASSERT_EQ(c(i, j) != 0.125, is_written && i != 7) << i << ", " << j;  // row 7 has an infinity
    }
  }
}

TEST_P(CheckedKernel, CountsWithoutWriting) {
  const std::vector<std::uint8_t> states = states_;
  const std::vector<double> c = c_;
  const std::int64_t open = run(/*writes=*/false);
  EXPECT_EQ(states_, states);
  EXPECT_EQ(c_, c);
  EXPECT_EQ(run(/*writes=*/true), open);
}

INSTANTIATE_TEST_SUITE_P(Layouts, CheckedKernel, ::testing::Values(Layout::column_major, Layout::row_major));

}  // namespace
}  // namespace kintsugi::core
