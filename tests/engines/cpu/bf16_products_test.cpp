// Compares products of bf16 slices by a matrix unit with the reference engine, bit for bit: by AMX where the
// CPU has it, and by a unit in software, which the model of the reference engine is.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/memory.hpp"
#include "engines/cpu/products.hpp"
#include "engines/reference/models.hpp"
#include "engines/registry.hpp"
#include "execute/execute.hpp"
#include "planner/steps.hpp"
#include "split/ranges.hpp"
#include "tests/engines/cpu/float_slices.hpp"
#include "tests/engines/cpu/software_bf16_unit.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/random_product.hpp"

namespace kintsugi::core {

#if defined(__x86_64__) && defined(__linux__)

void multiply_tiles_by_model(const std::byte* left, const std::byte* right, float* sums) {
  constexpr int edge = 16;
  constexpr int depth = 32;
  const auto number = [](const std::byte* tile, int index) {
    std::uint16_t pattern;
    std::memcpy(&pattern, tile + 2 * index, sizeof pattern);
    return AmxBf16::load(bf16, pattern);
  };
  std::array<std::array<float, depth>, edge> rows, columns;
  for (std::size_t v = 0; v < edge; ++v) {
    for (std::size_t p = 0; p < depth; ++p) {
      rows[v][p] = number(left, static_cast<int>(v * depth + p));
      columns[v][p] = number(right, static_cast<int>(p / 2 * depth + 2 * v + p % 2));
    }
  }
  for (std::size_t i = 0; i < edge; ++i) {
    for (std::size_t j = 0; j < edge; ++j) {
      float& sum = sums[i * edge + j];
      sum = AmxBf16::run(rows[i].data(), columns[j].data(), depth, sum);
    }
  }
}

namespace {

// The unit of this CPU, else the one in software, which needs AVX-512; none without it. (Beside AMX the
// one in software takes a minute for what takes two seconds on an EPYC.)
std::vector<Bf16Kernels> all_kernels() {
  std::vector<Bf16Kernels> kernels;
  if (const Bf16Kernels* unit = bf16_kernels()) return {*unit};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    kernels.push_back(bf16_amx);
    kernels.back().name = "software";
    kernels.back().multiply = multiply_bf16_panels_by_model;
  }
  return kernels;
}

class Bf16ByUnit : public testing::Test {
 protected:
  void SetUp() override {
    if (kernels_.empty()) GTEST_SKIP() << "this CPU has no AVX-512";
  }
  const std::vector<Bf16Kernels> kernels_ = all_kernels();
};

using FloatProduct = RandomProduct<float>;

Plan plan_with(const FloatProduct& each, const char* engine, const char* scheme, const char* accumulator) {
  SettingLayer call;
  call.set(find_setting("scheme"), scheme, "test");
  if (accumulator != nullptr) call.set(find_setting("accumulator"), accumulator, "test");
  call.set(find_setting("threads"), "2", "test");
  return make_plan_on(each.problem, Settings(call, {}, {}, {}), *find_engine(engine));
}

// Operands, ranges and scratch memory of a fused product by one of the kernels.
class FusedRun {
 public:
  FusedRun(const FloatProduct& each, const Plan& plan)
      : each_(each), candidate_(plan.candidates.front()),
        fused_(fused_problem(plan, candidate_, candidate_.program)),
        a_(matrix_view(each.a.data(), each.problem.layout, each.problem.op_a, each.problem.m, each.problem.k,
                       each.problem.lda)),
        b_(matrix_view(each.b.data(), each.problem.layout, each.problem.op_b, each.problem.k, each.problem.n,
                       each.problem.ldb)
               .transposed()),
        rows_(static_cast<std::size_t>(each.problem.m)), columns_(static_cast<std::size_t>(each.problem.n)) {
    find_ranges(a_, fused_.split_a, rows_, 1);
    find_ranges(b_, fused_.split_b, columns_, 1);
  }

  bool is_taken() const { return takes_bf16(fused_); }

  MatrixView<float> view_of_c(std::vector<float>& c) const {
    const Problem& problem = each_.problem;
    return matrix_view(c.data(), problem.layout, Op::none, problem.m, problem.n, problem.ldc);
  }

  // `expected`: result of the reference, which has the elements of rows and columns that are not finite.
  std::vector<float> run(const Bf16Kernels& kernels, std::vector<float>& expected, int threads) const {
    std::vector<float> c = each_.c;
    const std::size_t bytes = bf16_products.scratch_bytes(fused_, threads);
    const HostBuffer scratch({}, bytes);
    std::memset(scratch.pointer(), 0xcd, bytes);
    const MatrixView<float> view = view_of_c(c);
    multiply_bf16(FusedProduct<float>{.problem = fused_,
                                      .a = a_,
                                      .b = b_,
                                      .rows = rows_,
                                      .columns = columns_,
                                      .c = view,
                                      .alpha = each_.alpha,
                                      .beta = each_.beta,
                                      .scratch = static_cast<std::byte*>(scratch.pointer()),
                                      .threads = threads},
                  kernels);
    const MatrixView<float> special = view_of_c(expected);
    for (std::int64_t i = 0; i < view.rows; ++i) {
      for (std::int64_t j = 0; j < view.columns; ++j) {
        if (!rows_[static_cast<std::size_t>(i)].finite() || !columns_[static_cast<std::size_t>(j)].finite())
          view(i, j) = special(i, j);
      }
    }
    return c;
  }

 private:
  const FloatProduct& each_;
  const Candidate& candidate_;
  FusedProblem fused_;
  MatrixView<const float> a_;
  MatrixView<const float> b_;
  std::vector<VectorRange> rows_;
  std::vector<VectorRange> columns_;
};

void expect_bits_of_reference(const std::vector<Bf16Kernels>& all, const FloatProduct& each,
                              const char* scheme, const std::string& name) {
  const Plan reference = plan_with(each, "reference", scheme, "amx-bf16");
  const FusedRun fused(each, reference);
  ASSERT_TRUE(fused.is_taken()) << scheme;
  std::vector<float> expected = each.run(reference);
  for (const Bf16Kernels& kernels : all) {
    const Problem& problem = each.problem;
    ASSERT_TRUE(have_same_bits(expected, fused.run(kernels, expected, 1 + static_cast<int>(problem.m % 2))))
        << kernels.name << ", " << scheme << ", " << name << ": " << problem.m << " x " << problem.n << " x "
        << problem.k;
  }
}

// Multiplies elements by powers of two, so that accumulators are rescaled (50), and so that scaled elements
// and slices are subnormal or underflow (100).
void widen(std::vector<float>& matrix, int binades, Random& random) {
  for (float& x : matrix) x = std::ldexp(x, between(random, -binades, binades));
}

TEST_F(Bf16ByUnit, FusedHaveTheBitsOfTheReference) {
  const std::vector<const char*> schemes{"bf16x3", "bf16x6", "bf16x9", "bf16x6:block=128",
                                         "bf16x6:block=512"};
  for (std::uint64_t seed = 0; seed < (test::thorough ? 80 : 24); ++seed) {
    FloatProduct each(seed);
    Random random(seed);
    if (seed % 4 == 1) widen(each.a, seed % 8 == 1 ? 50 : 100, random);
    if (seed % 4 == 1) widen(each.b, 20, random);
    if (seed % 8 == 3) widen(each.b, 50, random);
    expect_bits_of_reference(kernels_, each, schemes[each.draw(schemes.size())],
                             "case " + std::to_string(seed));
  }
}

// A problem whose operands lie in memory as A * B of two column-major or row-major matrices.
FloatProduct of_shape(std::int64_t m, std::int64_t n, std::int64_t k, Layout layout) {
  FloatProduct each(1);
  const bool by_rows = layout == Layout::row_major;
  each.problem = {.m = m,
                  .n = n,
                  .k = k,
                  .lda = by_rows ? k : m,
                  .ldb = by_rows ? n : k,
                  .ldc = by_rows ? n : m,
                  .type = OperandType::f32,
                  .layout = layout};
  Random random(static_cast<std::uint64_t>(m + n + k));
  for (auto* matrix : {&each.a, &each.b, &each.c}) {
    matrix->resize(static_cast<std::size_t>(std::max({m * k, k * n, m * n})));
    for (float& x : *matrix) x = std::uniform_real_distribution<float>(-1, 1)(random);
  }
  each.beta = -1;
  return each;
}

// Several tiles of C, and several segments of k.
TEST_F(Bf16ByUnit, InSeveralTilesHaveTheBitsOfTheReference) {
  expect_bits_of_reference(kernels_, of_shape(550, 600, 40, Layout::column_major), "bf16x3", "tiles");
  expect_bits_of_reference(kernels_, of_shape(600, 550, 40, Layout::row_major), "bf16x3", "tiles by rows");
  expect_bits_of_reference(kernels_, of_shape(40, 35, 16500, Layout::column_major), "bf16x6", "segments");
}

// The kernel leaves the slices of other schemes to the engine.
TEST_F(Bf16ByUnit, FusedAreOnlyThoseOfOneAccumulator) {
  const FloatProduct each = of_shape(40, 30, 1000, Layout::column_major);
  for (const char* scheme : {"bf16", "split-n:format=bf16:a=2:b=2", "bf16x6:block=576"})
    EXPECT_FALSE(FusedRun(each, plan_with(each, "reference", scheme, "amx-bf16")).is_taken()) << scheme;
}

TEST_F(Bf16ByUnit, OfSlicesInMemoryHaveTheBitsOfTheReferenceOnRandomSchedules) {
  for (std::uint64_t seed = 0; seed < (test::thorough ? 300 : 48); ++seed) {
    Random random(seed);
    RandomSchedule drawn(random);
    const bool is_large = seed % 8 == 0;
    const bool is_long = seed % 8 == 4;
    if (is_long) drawn.schedule.k_block = drawn.schedule.k_segment = drawn.schedule.k_step = 0;
    if (seed % 16 == 4) drawn.schedule.k_step = 600;
    const int m = between(random, 1, is_large ? 200 : 50);
    const int n = between(random, 1, is_large ? 140 : 40);
    const int k = is_long ? between(random, 500, 1300) : between(random, 1, 150);
    const int least = seed % 3 == 0 ? -90 : -20;
    const BothSlices a(bf16, drawn.schedule.slices_a, m, k, least, seed % 3 == 0 ? -45 : 10, random);
    const BothSlices b(bf16, drawn.schedule.slices_b, n, k, least, seed % 3 == 0 ? -45 : 10, random);
    const std::vector<float> expected = reference_sums(drawn.schedule, a, b, Accumulator::amx_bf16);
    for (const Bf16Kernels& kernels : kernels_) {
      const std::vector<float> sums = sums_by(
          bf16_worker_bytes(drawn.schedule), drawn.schedule, a, b, Accumulator::amx_bf16,
          1 + static_cast<int>(seed % 3), [&](const Multiplication& task) { multiply_bf16(task, kernels); });
      ASSERT_TRUE(same_bits(sums, expected))
          << kernels.name << ", seed " << seed << ": " << m << " x " << n << " x " << k;
    }
  }
}

// Intended failure: another accumulator has other bits.
TEST_F(Bf16ByUnit, AnotherAccumulatorHasOtherBits) {
  const FloatProduct each = of_shape(40, 30, 200, Layout::column_major);
  const Plan plan = plan_with(each, "reference", "bf16x6", "amx-bf16");
  std::vector<float> other = each.run(plan_with(each, "reference", "bf16x6", "fp32"));
  for (const Bf16Kernels& kernels : kernels_)
    EXPECT_FALSE(have_same_bits(other, FusedRun(each, plan).run(kernels, other, 1))) << kernels.name;
}

// The engine multiplies by the unit where the CPU has it, and by FP32 where a call says so.
TEST(Bf16Engine, TakesTheUnitOfTheCpu) {
  const Engine& engine = *find_engine("cpu");
  if (!engine.unavailable_reason().empty()) GTEST_SKIP() << engine.unavailable_reason();
  const bool has_unit = bf16_kernels() != nullptr;
  EXPECT_EQ(engine.accumulators(FormatId::bf16).front(),
            has_unit ? Accumulator::amx_bf16 : Accumulator::fp32);
  for (const char* scheme : {"bf16x3", "bf16x6", "bf16x9", "split-n:format=bf16:a=2:b=3"}) {
    const FloatProduct each = of_shape(70, 50, 300, Layout::row_major);
    const Plan plan = plan_with(each, "cpu", scheme, nullptr);
    const char* const accumulator = accumulator_name(plan.candidates.front().accumulator);
    EXPECT_STREQ(accumulator, has_unit ? "amx-bf16" : "fp32");
    EXPECT_TRUE(have_same_bits(each.run(plan), each.run(plan_with(each, "reference", scheme, accumulator))))
        << scheme;
    EXPECT_TRUE(have_same_bits(each.run(plan_with(each, "cpu", scheme, "fp32")),
                               each.run(plan_with(each, "reference", scheme, "fp32"))))
        << scheme;
  }
}

}  // namespace

#endif

}  // namespace kintsugi::core
