// Tests the cost model against its own constants, and what the policy auto decides by it.
#include "planner/expected_times.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "engines/registry.hpp"
#include "planner/candidates.hpp"
#include "planner/plan.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {
namespace {

Problem problem_of(std::int64_t m, std::int64_t n, std::int64_t k, OperandType type = OperandType::f32) {
  Problem problem;
  problem.type = type;
  problem.m = m;
  problem.n = n;
  problem.k = k;
  problem.batch_count = 1;
  return problem;
}

ExpectedTimes times_of(const Engine& engine, const char* scheme, const Problem& problem) {
  return expected_times(engine, fitted_program(*find_scheme(scheme), problem), problem, {});
}

const char* const schemes_of_fp32[] = {"fp16",   "fp16x3",          "bf16x6", "quantensor",
                                       "int8x6", "ozaki2:moduli=9", "int52"};

TEST(ExpectedTimes, GrowWithEverySize) {
  const Engine& cpu = *find_engine("cpu");
  for (const char* scheme : schemes_of_fp32) {
    for (const std::int64_t size : {64, 500, 2048}) {
      const ExpectedTimes times = times_of(cpu, scheme, problem_of(size, size, size));
      for (const Problem& larger : {problem_of(2 * size, size, size), problem_of(size, 2 * size, size),
                                    problem_of(size, size, 2 * size)}) {
        EXPECT_GT(times_of(cpu, scheme, larger).emulated, times.emulated) << scheme << size;
        EXPECT_GT(times_of(cpu, scheme, larger).native, times.native) << scheme << size;
      }
    }
  }
}

// Everything but the products counts for less in larger cubes, so the ratio approaches the number of
// products.
TEST(ExpectedTimes, LargeCubesTakeTheTimeOfTheirProducts) {
  const Engine& cpu = *find_engine("cpu");
  for (const char* scheme : schemes_of_fp32) {
    double previous = INFINITY;
    for (const std::int64_t size : {128, 256, 512, 1024, 4096, 262144}) {
      const ExpectedTimes times = times_of(cpu, scheme, problem_of(size, size, size));
      const double time_per_product = times.emulated / std::pow(static_cast<double>(size), 3);
      EXPECT_LT(time_per_product, previous) << scheme << size;
      previous = time_per_product;
    }
    const Program program = fitted_program(*find_scheme(scheme), OperandType::f32, 262144);
    const double products =
        cpu.step_costs(program.split_a, {}).product * static_cast<double>(program.schedule.terms.size());
    EXPECT_GE(previous, products) << scheme;
    EXPECT_LT(previous, products * 1.2) << scheme;
  }
}

TEST(ExpectedTimes, AreOrderedByWorkAndType) {
  const Engine& cpu = *find_engine("cpu");
  const Problem problem = problem_of(700, 300, 900, OperandType::f64);
  const auto emulated = [&](const char* scheme) { return times_of(cpu, scheme, problem).emulated; };
  EXPECT_LT(emulated("ozaki2:moduli=12"), emulated("ozaki2:moduli=13"));
  EXPECT_LT(emulated("ozaki-int8:slices=5"), emulated("ozaki-int8:slices=6"));
  // 35 products of elements are less than the 64 of the embedding, where products are what takes the time.
  const Problem large = problem_of(50'000, 50'000, 50'000, OperandType::f64);
  Problem complex = large;
  complex.complex = true;
  const ExpectedTimes real_times = times_of(cpu, "ozaki2", large);
  const ExpectedTimes complex_times = times_of(cpu, "ozaki2", complex);
  EXPECT_GT(complex_times.emulated, real_times.emulated * 35 / 16 * 0.8);
  EXPECT_LT(complex_times.emulated, real_times.emulated * 3);
  EXPECT_GT(complex_times.native, real_times.native * 3);
}

TEST(ExpectedTimes, ASkinnyCallIsMostlySplits) {
  const Engine& cpu = *find_engine("cpu");
  const ExpectedTimes skinny = times_of(cpu, "int8x6", problem_of(2048, 1, 2048));
  EXPECT_GT(skinny.emulated, 3 * skinny.native);
}

// The difference is the time of the split that the prepared side does not need.
TEST(ExpectedTimes, PreparedOperandsNeedNoSplit) {
  const Engine& cpu = *find_engine("cpu");
  for (const char* scheme : schemes_of_fp32) {
    for (const bool complex : {false, true}) {
      Problem problem = problem_of(500, 40, 700);
      problem.complex = complex;
      Problem a = problem, b = problem, both = problem;
      a.prepared_a = b.prepared_b = both.prepared_a = both.prepared_b = true;
      const ExpectedTimes plain = times_of(cpu, scheme, problem);
      const double split_time_a = plain.emulated - times_of(cpu, scheme, a).emulated;
      const double split_time_b = plain.emulated - times_of(cpu, scheme, b).emulated;
      EXPECT_GT(split_time_b, 0) << scheme;
      EXPECT_GT(split_time_a, 5 * split_time_b) << scheme << ": 500 vectors and 40, or 80";
      EXPECT_NEAR(times_of(cpu, scheme, both).emulated, plain.emulated - split_time_a - split_time_b,
                  1e-9 * plain.emulated);
      EXPECT_EQ(times_of(cpu, scheme, both).native, plain.native);
    }
  }
}

// An engine whose int8 products are much faster than its native ones.
class FastIntegerEngine final : public HostEngine {
 public:
  explicit FastIntegerEngine(const StepCosts& costs) : costs_(costs) {}
  std::string_view name() const override { return "fast-integers"; }
  std::string_view summary() const override { return "reports the costs that a test gives it"; }
  std::int64_t largest_size() const override { return 1 << 30; }
  std::string unavailable_reason() const override { return {}; }
  std::string details() const override { return {}; }
  std::span<const Accumulator> accumulators(FormatId format) const override {
    static constexpr std::array supported{Accumulator::int32};
    if (format != FormatId::int8) return {};
    return supported;
  }
  SliceStorage slice_storage(FormatId) const override { return SliceStorage::packed; }
  double relative_rate(FormatId) const override { return 40; }
  double native_double_double_time_ratio() const override { return 8; }
  MatrixUnitState matrix_unit_state(int threads) const override {
    return threads > 1 ? MatrixUnitState::unknown : unit;
  }
  StepCosts step_costs(const SplitRule&, const CallConditions& conditions) const override {
    StepCosts costs = costs_;
    if (is_slow(conditions.unit)) costs.product *= 100;
    return costs;
  }
  MatrixUnitState unit = MatrixUnitState::steady;
  std::size_t scratch_bytes(const Schedule&, FormatId, std::int64_t, int) const override { return 0; }
  bool reduces_sums_modulo() const override { return false; }
  void multiply(const Multiplication&) const override {}
  void native(const NativeProduct<float>&) const override {}
  void native(const NativeProduct<double>&) const override {}
  void native(const NativeProduct<DoubleDouble>&) const override {}
  void native(const NativeProduct<std::complex<float>>&) const override {}
  void native(const NativeProduct<std::complex<double>>&) const override {}

 private:
  StepCosts costs_;
};

bool emulates(const Engine& engine, const Problem& problem) {
  Plan plan;
  plan.problem = problem;
  plan.engine = &engine;
  plan.contract.accuracy = accuracy_of_type(OperandType::f32);
  plan.contract.coefficient = contract_of_type(OperandType::f32, problem.k);
  return !proved_emulations(plan, {.include_slower = false, .native_follows = true}).empty();
}

// `auto` compares whole calls: faster products alone may not pay for splits and recombination.
TEST(Auto, CountsSplitsAndRecombination) {
  const FastIntegerEngine products_alone(StepCosts{});
  const FastIntegerEngine slow_splits(StepCosts{.element = 100, .slice = 30});
  const FastIntegerEngine slow_recombination(StepCosts{.result = 500, .sum = 10});
  const Problem cube = problem_of(4096, 4096, 4096);
  const Problem skinny = problem_of(4096, 128, 4096);
  const Problem shallow = problem_of(4096, 4096, 128);
  EXPECT_TRUE(emulates(products_alone, cube) && emulates(products_alone, skinny) &&
              emulates(products_alone, shallow));
  EXPECT_TRUE(emulates(slow_splits, cube));
  EXPECT_FALSE(emulates(slow_splits, skinny));
  Problem prepared = skinny;
  prepared.prepared_a = true;
  EXPECT_TRUE(emulates(slow_splits, prepared));
  EXPECT_TRUE(emulates(slow_recombination, cube) && emulates(slow_recombination, skinny));
  EXPECT_FALSE(emulates(slow_recombination, shallow));
}

// The state of the matrix unit is part of the plan, and decides.
TEST(Auto, CountsTheStateOfTheMatrixUnit) {
  FastIntegerEngine engine(StepCosts{.product = 0.02});
  Problem problem = problem_of(4096, 4096, 4096);
  problem.type = OperandType::f32;
  SettingLayer call;
  call.set(find_setting("threads"), "1", "the test");
  const auto planned = [&] { return make_plan_on(problem, Settings(call, {}, {}, {}), engine); };
  for (const MatrixUnitState state :
       {MatrixUnitState::fast, MatrixUnitState::slow, MatrixUnitState::set_fast, MatrixUnitState::set_slow}) {
    engine.unit = state;
    const Plan plan = planned();
    EXPECT_EQ(plan.unit, state);
    EXPECT_EQ(plan.is_native(), is_slow(state)) << static_cast<int>(state);
  }
  call.set(find_setting("threads"), "2", "the test");
  EXPECT_EQ(planned().unit, MatrixUnitState::unknown);
  EXPECT_FALSE(planned().is_native());
}

}  // namespace
}  // namespace kintsugi::core
