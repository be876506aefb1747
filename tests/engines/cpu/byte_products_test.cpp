// Compares fused products of bytes with the reference engine, bit for bit, for random problems and every
// family of kernels.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "planner/steps.hpp"
#include "split/norms.hpp"
#include "split/ranges.hpp"
#include "tests/support/effort.hpp"

namespace kintsugi::core {
namespace {

template <class T>
constexpr OperandType operand_type = sizeof(T) == sizeof(float) ? OperandType::f32 : OperandType::f64;

// A random problem with its matrices.
template <class T>
class Case {
 public:
  explicit Case(std::uint64_t seed) : random_(seed) {
    problem.type = operand_type<T>;
    problem.m = pick({1, 2, 5, 16, 31, 33, 64, 65, 130, 200});
    problem.n = pick({1, 3, 4, 17, 32, 48, 63, 97, 150});
    problem.k = pick({1, 2, 5, 63, 64, 66, 129, 511, 513, 1030});
    problem.layout = draw(2) == 0 ? Layout::column_major : Layout::row_major;
    problem.op_a = draw(2) == 0 ? Op::none : Op::transpose;
    problem.op_b = draw(2) == 0 ? Op::none : Op::transpose;
    const bool by_rows = problem.layout == Layout::row_major;
    const auto line = [&](Op op, std::int64_t rows, std::int64_t columns) {
      return ((op == Op::transpose) != by_rows ? columns : rows) + draw(3);
    };
    problem.lda = line(problem.op_a, problem.m, problem.k);
    problem.ldb = line(problem.op_b, problem.k, problem.n);
    problem.ldc = (by_rows ? problem.n : problem.m) + draw(3);
    alpha = std::vector<T>{1, 1, 1, -1, T(2.5)}[draw(5)];
    beta = std::vector<T>{0, 0, 1, -1, T(0.3)}[draw(5)];
    a = matrix(problem.lda * std::max(problem.m, problem.k));
    b = matrix(problem.ldb * std::max(problem.k, problem.n));
    c = matrix(problem.ldc * std::max(problem.m, problem.n));
    for (T& x : c) x = x - x == T(0) ? x : T(7);
    if (problem.ldc > 0 && beta == 0) std::fill(c.begin(), c.end(), std::numeric_limits<T>::quiet_NaN());
  }

  Plan plan(const char* engine, const char* scheme) {
    SettingLayer call;
    call.set(find_setting("scheme"), scheme, "test");
    call.set(find_setting("threads"), draw(2) == 0 ? "1" : "3", "test");
    return make_plan_on(problem, Settings(call, {}, {}, {}), *find_engine(engine));
  }

  std::vector<T> run(const Plan& plan) const {
    std::vector<T> result = c;
    Report report;
    Operands operands;
    operands.alpha = alpha;
    operands.beta = beta;
    operands.a = a.data();
    operands.b = b.data();
    operands.c = result.data();
    execute(plan, operands, report);
    return result;
  }

  std::uint64_t draw(std::uint64_t most) { return random_() % most; }

  Problem problem;
  T alpha = 1;
  T beta = 0;
  std::vector<T> a, b, c;

 private:
  std::int64_t pick(const std::vector<std::int64_t>& from) { return from[draw(from.size())]; }

  std::vector<T> matrix(std::int64_t elements) {
    std::normal_distribution<double> normal;
    const double phi = std::vector<double>{0, 0.5, 2, 6}[draw(4)];
    const std::uint64_t kind = draw(8);
    std::vector<T> result(static_cast<std::size_t>(elements));
    for (T& x : result) {
      double value = (static_cast<double>(random_() >> 11) * 0x1p-53 - 0.5) * std::exp(phi * normal(random_));
      if (kind == 0) value = std::round(3 * value);  // many zeros in C
      if (kind == 1) value = draw(2) == 0 ? 0 : value;
      if (kind == 2)
        value *= sizeof(T) == sizeof(float) ? 1e-36 : 1e-290;  // results below the normal numbers
      x = static_cast<T>(value);
    }
    if (kind == 3) result[draw(result.size())] = std::numeric_limits<T>::quiet_NaN();
    if (kind == 4) result[draw(result.size())] = std::numeric_limits<T>::infinity();
    return result;
  }

  std::mt19937_64 random_;
};

template <class T>
bool have_same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) ? !std::isnan(y[i]) : std::memcmp(&x[i], &y[i], sizeof(T)) != 0) return false;
  }
  return true;
}

template <class T>
void expect_bits_of_reference(const std::vector<const char*>& schemes) {
  if (int8_choice().kernels->panels == nullptr) GTEST_SKIP() << "this CPU has no AVX-512 VNNI";
  const std::uint64_t cases = test::thorough ? 300 : 30;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    Case<T> each(seed);
    const char* scheme = schemes[each.draw(schemes.size())];
    const Plan plan = each.plan("cpu", scheme);
    ASSERT_EQ(std::ranges::count(plan.steps, StepKind::fused, &Step::kind), 1) << scheme;
    const Problem& problem = each.problem;
    ASSERT_TRUE(have_same_bits(each.run(each.plan("reference", scheme)), each.run(plan)))
        << scheme << ", case " << seed << ": " << problem.m << " x " << problem.n << " x " << problem.k;
  }
}

TEST(ByteProducts, OfFp64HaveTheBitsOfTheReference) {
  expect_bits_of_reference<double>({"ozaki2", "ozaki2:moduli=15:scale=norm", "ozaki2:moduli=7",
                                    "ozaki2:moduli=18:scale=product", "ozaki2:moduli=25"});
}

TEST(ByteProducts, OfFp32HaveTheBitsOfTheReference) {
  expect_bits_of_reference<float>({"int8x6", "ozaki2", "ozaki2:moduli=8:scale=norm", "ozaki-int8:slices=2",
                                   "ozaki-int8:slices=4", "ozaki2:moduli=16"});
}

// Runs the plan's fused step by the kernels of one family.
template <class T>
std::vector<T> run_family(const Case<T>& each, const Plan& plan, const PanelKernels& kernels) {
  const Problem& problem = each.problem;
  const Candidate& candidate = plan.candidates.front();
  const FusedProblem fused = fused_problem(plan, candidate, candidate.program);
  const MatrixView<const T> a =
      matrix_view(each.a.data(), problem.layout, problem.op_a, problem.m, problem.k, problem.lda);
  const MatrixView<const T> b =
      matrix_view(each.b.data(), problem.layout, problem.op_b, problem.k, problem.n, problem.ldb)
          .transposed();
  std::vector<VectorRange> rows(static_cast<std::size_t>(problem.m)),
      columns(static_cast<std::size_t>(problem.n));
  find_ranges(a, fused.split_a, rows, 1);
  find_ranges(b, fused.split_b, columns, 1);
  std::vector<T> c = each.c;
  std::vector<std::byte> memory(byte_products.scratch_bytes(fused, 2) + 256, std::byte{0xcd});
  void* scratch = memory.data();
  std::size_t bytes = memory.size();
  multiply_panels(
      FusedProduct<T>{.problem = fused,
                      .a = a,
                      .b = b,
                      .rows = rows,
                      .columns = columns,
                      .c = matrix_view(c.data(), problem.layout, Op::none, problem.m, problem.n, problem.ldc),
                      .alpha = each.alpha,
                      .beta = each.beta,
                      .scratch = static_cast<std::byte*>(std::align(256, bytes - 256, scratch, bytes)),
                      .threads = 2},
      kernels);
  return c;
}

template <class T>
void expect_same_bits_of_families(const char* scheme) {
  for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
    Case<T> each(seed);
    const Plan plan = each.plan("cpu", scheme);
    std::vector<T> expected;
    for (const Int8Kernels* kernels : int8_families()) {
      if (kernels->panels == nullptr) continue;
      const std::vector<T> result = run_family(each, plan, *kernels->panels);
      if (expected.empty()) expected = result;
      ASSERT_TRUE(have_same_bits(expected, result)) << kernels->name << ", " << scheme << ", case " << seed;
    }
  }
}

TEST(ByteProducts, OfAllFamiliesHaveTheSameBits) {
  if (int8_choice().kernels->panels == nullptr) GTEST_SKIP() << "this CPU has no AVX-512 VNNI";
  expect_same_bits_of_families<double>("ozaki2:moduli=15");
  expect_same_bits_of_families<float>("int8x6");
}

// A workspace limit divides C into blocks, which have scratch memory of their own.
TEST(ByteProducts, InBlocksOfCHaveTheSameBits) {
  if (int8_choice().kernels->panels == nullptr) GTEST_SKIP() << "this CPU has no AVX-512 VNNI";
  Case<double> each(5);
  each.problem = {.m = 700, .n = 650, .k = 300, .lda = 700, .ldb = 300, .ldc = 700, .type = OperandType::f64};
  std::mt19937_64 random(5);
  for (auto* matrix : {&each.a, &each.b, &each.c}) {
    matrix->resize(700 * 650);
    for (double& x : *matrix) x = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
  }
  const Plan whole = each.plan("cpu", "ozaki2:moduli=15");
  SettingLayer call;
  call.set(find_setting("scheme"), "ozaki2:moduli=15", "test");
  call.set(find_setting("workspace_limit"), std::to_string(whole.workspace_bytes / 3).c_str(), "test");
  const Plan blocks = make_plan_on(each.problem, Settings(call, {}, {}, {}), *find_engine("cpu"));
  EXPECT_LT(blocks.workspace_bytes, whole.workspace_bytes / 2);
  EXPECT_TRUE(have_same_bits(each.run(whole), each.run(blocks)));
}

}  // namespace
}  // namespace kintsugi::core
