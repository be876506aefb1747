// Compares fused products of bytes with the reference engine, bit for bit, for random problems and every
// family of kernels.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "engines/cpu/byte_panels.hpp"
#include "engines/cpu/products.hpp"
#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "planner/steps.hpp"
#include "split/norms.hpp"
#include "split/ranges.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/random_product.hpp"

namespace kintsugi::core {
namespace {

std::uint64_t cases() { return test::thorough ? 200 : 8; }

template <class T>
void expect_bits_of_reference(const std::vector<const char*>& schemes) {
  if (int8_choice().kernels->panels == nullptr) GTEST_SKIP() << "this CPU has no AVX-512 VNNI";
  for (std::uint64_t seed = 0; seed < cases(); ++seed) {
    RandomProduct<T> each(seed);
    const char* scheme = schemes[each.draw(schemes.size())];
    const Plan plan = each.plan("cpu", "scheme", scheme);
    ASSERT_EQ(std::ranges::count(plan.steps, StepKind::fused, &Step::kind), 1) << scheme;
    const Problem& problem = each.problem;
    ASSERT_TRUE(have_same_bits(each.run(each.plan("reference", "scheme", scheme)), each.run(plan)))
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

TEST(ByteProducts, OfComplexElementsHaveTheBitsOfTheReference) {
  expect_bits_of_reference<std::complex<double>>(
      {"ozaki2", "ozaki2:moduli=15:scale=norm", "ozaki2:moduli=7", "ozaki2:moduli=18:scale=product"});
  expect_bits_of_reference<std::complex<float>>(
      {"ozaki2", "ozaki2:moduli=8:scale=norm", "ozaki2:moduli=4", "ozaki2:moduli=21"});
}

TEST(ByteProducts, OfDoubleDoubleElementsHaveTheBitsOfTheReference) {
  expect_bits_of_reference<DoubleDouble>({"ozaki2", "ozaki2:moduli=29:scale=norm", "ozaki2:moduli=7",
                                          "ozaki2:moduli=30", "ozaki2:moduli=26:scale=product"});
}

// Correctly rounded results have one value, so any other way to them gives the same bits.
template <class T>
void expect_exact_bits() {
  for (std::uint64_t seed = 2000; seed < 2000 + cases() / 4; ++seed) {
    RandomProduct<T> each(seed);
    const Plan plan = each.plan("cpu", "accuracy", "exact");
    ASSERT_TRUE(
        have_same_bits(each.run(each.plan("reference", "scheme", "superaccumulator")), each.run(plan)))
        << "case " << seed << ": " << each.problem.m << " x " << each.problem.n << " x " << each.problem.k;
  }
}

TEST(ByteProducts, UnderChecksAreCorrectlyRounded) {
  expect_exact_bits<float>();
  expect_exact_bits<double>();
  expect_exact_bits<std::complex<float>>();
  expect_exact_bits<std::complex<double>>();
  expect_exact_bits<DoubleDouble>();
}

// Runs the plan's fused step by the kernels of one family.
template <class T>
std::vector<T> run_family(const RandomProduct<T>& each, const Plan& plan, const PanelKernels& kernels,
                          const PanelStudy& study = {}) {
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
  std::vector<std::byte> memory(panel_scratch_bytes(fused, 2, study) + 256, std::byte{0xcd});
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
      kernels, study);
  return c;
}

template <class T>
void expect_same_bits_of_families(const char* scheme) {
  for (std::uint64_t seed = 1000; seed < 1040; ++seed) {
    RandomProduct<T> each(seed);
    const Plan plan = each.plan("cpu", "scheme", scheme);
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

// Studies change sizes and the order of reductions, never bits.
template <class T>
void expect_same_bits_in_studies(const char* scheme) {
  const std::uint64_t cases = test::thorough ? 60 : 10;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    RandomProduct<T> each(seed);
    const Plan plan = each.plan("cpu", "scheme", scheme);
    const auto vectors = [&](std::uint64_t most) {
      return panel_vectors * static_cast<std::int64_t>(each.draw(most));
    };
    const PanelStudy study{
        .depth = panel_step * static_cast<std::int64_t>(each.draw(panel_depth / panel_step + 1)),
        .left_tile = vectors(8),
        .right_tile = vectors(8),
        .left_block = vectors(12),
        .right_block = vectors(12),
        .reduces_at_once = each.draw(2) == 1};
    const PanelKernels& kernels = *int8_choice().kernels->panels;
    ASSERT_TRUE(have_same_bits(run_family(each, plan, kernels), run_family(each, plan, kernels, study)))
        << scheme << ", case " << seed << ": depth " << study.depth << ", tile " << study.left_tile << " x "
        << study.right_tile << ", block " << study.left_block << " x " << study.right_block;
  }
}

TEST(ByteProducts, InStudiesHaveTheSameBits) {
  if (int8_choice().kernels->panels == nullptr) GTEST_SKIP() << "this CPU has no AVX-512 VNNI";
  expect_same_bits_in_studies<double>("ozaki2:moduli=15");
  expect_same_bits_in_studies<float>("int8x6");
}

// beta = -0 reads no element of C, and leaves a sum of 0 its sign.
template <class T>
void expect_positive_zeros() {
  RandomProduct<T> each(7);
  each.problem.m = each.problem.n = each.problem.lda = each.problem.ldb = each.problem.ldc = 40;
  each.problem.k = 40;
  each.problem.op_a = each.problem.op_b = Op::none;
  each.alpha = T(1);
  each.beta = T(-0.0);
  each.a.assign(1600, T(1));
  each.b.assign(1600, T(1));
  each.c.assign(1600, T(5));
  const bool by_rows = each.problem.layout == Layout::row_major;
  for (std::size_t i = 0; i < 1600; ++i) {
    if ((by_rows ? i % 40 : i / 40) % 2 != 0) each.a[i] = T(-1);  // every other inner index
  }
  const std::vector<T> zeros(1600, T(0));
  EXPECT_TRUE(have_same_bits(each.run(each.plan("cpu", "scheme", "ozaki2")), zeros));
}

TEST(ByteProducts, GivePositiveZerosForNegativeZeroBeta) {
  expect_positive_zeros<float>();
  expect_positive_zeros<double>();
  expect_positive_zeros<std::complex<double>>();
  expect_positive_zeros<DoubleDouble>();
}

// A workspace limit divides C into blocks, which have scratch memory of their own.
TEST(ByteProducts, InBlocksOfCHaveTheSameBits) {
  if (int8_choice().kernels->panels == nullptr) GTEST_SKIP() << "this CPU has no AVX-512 VNNI";
  RandomProduct<double> each(5);
  each.problem = {.m = 700, .n = 650, .k = 300, .lda = 700, .ldb = 300, .ldc = 700, .type = OperandType::f64};
  std::mt19937_64 random(5);
  for (auto* matrix : {&each.a, &each.b, &each.c}) {
    matrix->resize(700 * 650);
    for (double& x : *matrix) x = static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
  }
  const Plan whole = each.plan("cpu", "scheme", "ozaki2:moduli=15");
  SettingLayer call;
  call.set(find_setting("scheme"), "ozaki2:moduli=15", "test");
  call.set(find_setting("threads"), "1", "test");  // more threads need more memory
  call.set(find_setting("workspace_limit"), std::to_string(whole.workspace_bytes / 3).c_str(), "test");
  const Plan blocks = make_plan_on(each.problem, Settings(call, {}, {}, {}), *find_engine("cpu"));
  EXPECT_LT(blocks.workspace_bytes, whole.workspace_bytes / 2);
  EXPECT_TRUE(have_same_bits(each.run(whole), each.run(blocks)));
}

}  // namespace
}  // namespace kintsugi::core
