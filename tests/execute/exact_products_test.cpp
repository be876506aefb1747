// Compares exact and reproducible products of the engine cpu, whose fused kernel checks elements, with the
// superaccumulator and the reference engine, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "engines/fused_kernel.hpp"
#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "execute/host/steps.hpp"
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
  const std::uint64_t cases = test::thorough ? 300 : 25;
  int checked = 0;  // the others are summed without slices
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    RandomProduct<T> each(seed);
    if (is_complex<T>) {  // the superaccumulator is slow
      each.problem.m = std::min<std::int64_t>(each.problem.m, 16);
      each.problem.n = std::min<std::int64_t>(each.problem.n, 17);
    }
    const Plan plan = each.plan("cpu", "accuracy", "exact");
    checked += plan.is_checked() ? 1 : 0;
    if (!is_complex<T> && !is_checked_by_kernels(plan))
      GTEST_SKIP() << "this CPU has no kernel that checks elements";
    const std::vector<T> expected = each.run(each.plan("reference", "scheme", "superaccumulator"));
    ASSERT_TRUE(have_same_bits(expected, each.run(plan)))
        << "case " << seed << ": " << each.problem.m << " x " << each.problem.n << " x " << each.problem.k;
  }
  if (find_engine("cpu")->relative_rate(FormatId::int8) < 1)
    GTEST_SKIP() << "exact sums take less time than residues on a CPU without fast int8 products";
  if (test::thorough) EXPECT_GT(checked, 1);  // a few cases may all be small
}

TEST(ExactProducts, OfFp64AreCorrectlyRounded) { expect_correct_rounding<double>(); }
TEST(ExactProducts, OfFp32AreCorrectlyRounded) { expect_correct_rounding<float>(); }
TEST(ExactProducts, OfComplexFp64AreCorrectlyRounded) { expect_correct_rounding<std::complex<double>>(); }
TEST(ExactProducts, OfComplexFp32AreCorrectlyRounded) { expect_correct_rounding<std::complex<float>>(); }

// Real alpha and beta leave the parts of exact sums apart, so that two doubles hold each of them. Small
// products then take less time than by residues.
TEST(ExactProducts, OfFewComplexElementsNeedNoResiduesIfScalarsAreReal) {
  using Complex = std::complex<double>;
  for (const std::int64_t n : {8, 1}) {
    for (const Complex& alpha : {Complex(2), Complex(2, 1)}) {
      RandomProduct<Complex> each(1);
      each.problem.m = each.problem.k = 8;
      each.problem.n = n;
      const Plan plan = each.plan("cpu", "accuracy", "exact");
      if (plan.engine->host()->sum_kernels() == nullptr) GTEST_SKIP() << "this CPU has no kernels of sums";
      // Without fast int8 products exact sums take less time, too.
      if (alpha.imag() != 0 && plan.engine->relative_rate(FormatId::int8) < 1) continue;
      std::vector<Complex> c = each.c;
      Report report;
      execute(plan,
              {.alpha = alpha,
               .beta = Complex(-1),
               .a = each.a.data(),
               .b = each.b.data(),
               .c = c.data(),
               .queue = {}},
              report);
      EXPECT_EQ(report.items[plan.candidates.size() - 1], alpha.imag() == 0 ? 1 : 0) << n;
    }
  }
}

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

// Few long vectors are summed without slices. The bits are those of residues, which are multiplied if the
// scheme is named. Some elements are on the grid and others are correctly rounded.
template <class T>
void expect_bits_of_residues() {
  int on_grid = 0;  // cases in which an element is not correctly rounded
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomProduct<T> each(seed);
    Problem& problem = each.problem;
    (each.draw(2) == 0 ? problem.m : problem.n) = 1 + static_cast<std::int64_t>(each.draw(4));
    problem.k = 100 + static_cast<std::int64_t>(each.draw(seed % 20 == 0 ? 20000 : 3000));
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::normal_distribution<double> normal;
    const double phi = std::vector<double>{0, 0.3, 1, 4}[each.draw(4)];
    const double unit = std::vector<double>{1, 1, 1e30, sizeof(T) == 4 ? 1e-37 : 1e-300}[each.draw(4)];
    problem.layout = Layout::column_major;
    problem.op_a = Op::transpose;
    problem.op_b = Op::none;
    problem.lda = problem.ldb = problem.k;
    problem.ldc = problem.m;
    each.a.resize(static_cast<std::size_t>(problem.m * problem.k));
    each.b.resize(static_cast<std::size_t>(problem.n * problem.k));
    each.c.assign(static_cast<std::size_t>(problem.m * problem.n), T(3));
    for (auto* matrix : {&each.a, &each.b}) {
      for (T& x : *matrix) x = static_cast<T>(uniform(random) * std::exp(phi * normal(random)) * unit);
    }
    const auto run = [&](const char* engine, const char* scheme, const char* accuracy = "reproducible") {
      SettingLayer call;
      call.set(find_setting("accuracy"), accuracy, "test");
      if (scheme != nullptr) call.set(find_setting("scheme"), scheme, "test");
      return each.run(make_plan_on(problem, Settings(call, {}, {}, {}), *find_engine(engine)));
    };
    const std::vector<T> expected = run("cpu", "ozaki2");
    ASSERT_TRUE(have_same_bits(expected, run("cpu", nullptr))) << "case " << seed;
    ASSERT_TRUE(have_same_bits(expected, run("reference", "int52"))) << "case " << seed;
    on_grid += have_same_bits(expected, run("cpu", nullptr, "exact")) ? 0 : 1;
  }
  if (sizeof(T) == sizeof(double)) EXPECT_GT(on_grid, 5);
}

TEST(ReproducibleProducts, OfFewFp64VectorsHaveTheBitsOfResidues) { expect_bits_of_residues<double>(); }
TEST(ReproducibleProducts, OfFewFp32VectorsHaveTheBitsOfResidues) { expect_bits_of_residues<float>(); }

template <class T>
bool is_exact_natively(const std::vector<T>& row, const std::vector<T>& column) {
  const auto length = static_cast<std::int64_t>(row.size());
  const MatrixView<const T> a{row.data(), 1, length, length, 1};
  const MatrixView<const T> b{column.data(), 1, length, length, 1};
  const auto summary_of_vector = [](const MatrixView<const T>& vector) {
    std::vector<VectorRange> range(1);
    find_few_ranges(vector, range);
    return summarize(range);
  };
  return native_is_exact(a, summary_of_vector(a), b, summary_of_vector(b));
}

// Returns the native_is_exact() of a row and a column of equal elements.
template <class T>
bool is_exact_natively(T x, T y, std::int64_t length) {
  return is_exact_natively(std::vector<T>(static_cast<std::size_t>(length), x),
                           std::vector<T>(static_cast<std::size_t>(length), y));
}

// Scaled by 2^-314, the smaller elements are zero.
TEST(NativeIsExact, NotIfElementsUnderflowWhenScaled) {
  const std::vector<double> ones(4, 1.0);
  EXPECT_FALSE(is_exact_natively<double>({0x1.5p364, -0x1.3p-797, -0x1.5p364, 0x1.4p-797}, ones));
  EXPECT_FALSE(is_exact_natively<double>(ones, {0x1p400, -0x1p-1074, -0x1p400, 0x1p-800}));
  EXPECT_FALSE(is_exact_natively<double>({0x1p50, 0x1p-1}, {1.0, 1.0}));
  EXPECT_TRUE(is_exact_natively<double>({0x1p50, 0.0}, {1.0, 1.0}));
}

TEST(NativeIsExact, IfTheBitsOfAllSumsFit) {
  EXPECT_TRUE(is_exact_natively(0x1p26 + 1, 0x1p25 + 1, 1));  // 27 and 26 bits
  EXPECT_FALSE(is_exact_natively(0x1p26 + 1, 0x1p25 + 1, 2));
  EXPECT_TRUE(is_exact_natively(-(0x1p22 + 1), (0x1p20 + 1) * 0x1p-80, 256));  // 23, 21 and 8 bits, and one
  EXPECT_FALSE(is_exact_natively(-(0x1p23 + 1), (0x1p21 + 1) * 0x1p-80, 256));
  EXPECT_TRUE(is_exact_natively(0.0, 3.0, 1000));
  EXPECT_TRUE(is_exact_natively(-1.0, 0x1p300, 1000));
  EXPECT_FALSE(is_exact_natively(0x1p-500, 1.0, 2));  // not moderate
  EXPECT_FALSE(is_exact_natively(0.1, 1.0, 2));
  EXPECT_FALSE(is_exact_natively(1.0, std::numeric_limits<double>::infinity(), 1));
  EXPECT_TRUE(is_exact_natively(0x1p11F + 1, 0x1p11F + 1, 1));
  EXPECT_FALSE(is_exact_natively(0x1p11F + 1, 0x1p11F + 1, 2));
  EXPECT_FALSE(is_exact_natively(0x1p100F, 0x1p30F, 2));  // overflows
  EXPECT_FALSE(is_exact_natively(0x1p-100F, 0x1p-60F, 2));
}

TEST(NativeIsExact, IfVectorsOfOneElementHaveANormalProduct) {
  EXPECT_TRUE(is_exact_natively(0.1, 0.3, 1));
  EXPECT_TRUE(is_exact_natively(0.1, 0x1.8p-1018, 1));
  EXPECT_FALSE(is_exact_natively(0.1, 0x1.8p-1019, 1));  // may be below 2^-1022
  EXPECT_TRUE(is_exact_natively(0x1p1000, 0x1.8p21, 1));
  EXPECT_FALSE(is_exact_natively(0x1p1000, 0x1.8p23, 1));  // may overflow
  EXPECT_TRUE(is_exact_natively(0.1F, 0x1.8p-122F, 1));
  EXPECT_FALSE(is_exact_natively(0.1F, 0x1.8p-123F, 1));
}

// Outer products of numbers of many binades, some of which are zero.
template <class T>
void expect_exact_outer_products() {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomProduct<T> each(seed);
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    each.problem.k = 1;
    each.problem.layout = seed % 3 == 0 ? Layout::row_major : Layout::column_major;
    each.problem.op_a = each.draw(2) == 0 ? Op::none : Op::transpose;
    each.problem.op_b = each.draw(2) == 0 ? Op::none : Op::transpose;
    each.problem.lda = each.problem.ldb = each.problem.ldc = std::max(each.problem.m, each.problem.n);
    each.alpha = seed % 2 == 0 ? T(1) : T(-1);
    each.beta = 0;
    const auto elements = static_cast<std::size_t>(each.problem.ldc * each.problem.ldc);
    const double binades = seed % 4 == 0 ? 1 : sizeof(T) == 4 ? 40 : 350;  // with under- and overflow
    for (auto* matrix : {&each.a, &each.b}) {
      matrix->resize(elements);
      for (T& x : *matrix)
        x = random() % 8 == 0 ? T(0) : static_cast<T>(normal(random) * std::exp2(binades * normal(random)));
    }
    each.c.assign(elements, T(NAN));
    ASSERT_TRUE(have_same_bits(each.run(each.plan("reference", "scheme", "superaccumulator")),
                               each.run(each.plan("cpu", "accuracy", "exact"))))
        << "case " << seed;
  }
}

TEST(NativeIsExact, Fp64OuterProductsHaveTheBitsOfTheSuperaccumulator) {
  expect_exact_outer_products<double>();
}
TEST(NativeIsExact, Fp32OuterProductsHaveTheBitsOfTheSuperaccumulator) {
  expect_exact_outer_products<float>();
}

// Products of integers, some of whose sums are zero: OpenBLAS multiplies those that have no rounding error.
template <class T>
void expect_exact_integers() {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RandomProduct<T> each(seed);
    std::mt19937_64 random(seed);
    each.problem.m = 1 + static_cast<std::int64_t>(each.draw(60));
    each.problem.k = 1 + static_cast<std::int64_t>(each.draw(60));
    each.problem.layout = Layout::column_major;
    each.problem.op_a = each.draw(2) == 0 ? Op::none : Op::transpose;
    each.problem.op_b = Op::none;
    each.problem.lda = std::max(each.problem.m, each.problem.k);
    each.problem.ldb = each.problem.k;
    each.problem.ldc = each.problem.m;
    each.alpha = seed % 2 == 0 ? T(1) : T(-1);
    each.beta = 0;
    const std::int64_t largest = seed % 4 == 0 ? 2 : sizeof(T) == 4 ? 150 : 1 << 20;
    for (auto* matrix : {&each.a, &each.b}) {
      matrix->resize(static_cast<std::size_t>(each.problem.lda *
                                              std::max({each.problem.m, each.problem.k, each.problem.n})));
      std::uniform_int_distribution<std::int64_t> integer(-largest, largest);
      for (T& x : *matrix) x = static_cast<T>(integer(random)) * (seed % 3 == 0 ? T(0x1p-20) : T(-1));
    }
    each.c.assign(static_cast<std::size_t>(each.problem.m * each.problem.n), T(NAN));
    ASSERT_TRUE(have_same_bits(each.run(each.plan("reference", "scheme", "superaccumulator")),
                               each.run(each.plan("cpu", "accuracy", "exact"))))
        << "case " << seed;
  }
}

TEST(NativeIsExact, Fp64IntegersHaveTheBitsOfTheSuperaccumulator) { expect_exact_integers<double>(); }
TEST(NativeIsExact, Fp32IntegersHaveTheBitsOfTheSuperaccumulator) { expect_exact_integers<float>(); }

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
  const Plan all = each.plan("cpu", "accuracy", "exact");
  if (find_engine("cpu")->relative_rate(FormatId::int8) < 1)
    GTEST_SKIP() << "exact sums take less time than residues on a CPU without fast int8 products";
  const std::size_t whole = all.workspace_bytes;
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
  static constexpr std::int64_t m = 150, n = 140, k = 300;  // smaller products have no checked candidates

  void SetUp() override {
    problem_ = {.m = m, .n = n, .k = k, .lda = m, .ldb = k, .ldc = ld(), .type = OperandType::f64};
    problem_.layout = Layout::column_major;
    SettingLayer call;
    call.set(find_setting("accuracy"), "exact", "test");
    plan_ = make_plan_on(problem_, Settings(call, {}, {}, {}), *find_engine("cpu"));
    if (find_engine("cpu")->relative_rate(FormatId::int8) < 1 || !is_checked_by_kernels(plan_))
      GTEST_SKIP() << "this CPU has no kernel that checks elements";
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
