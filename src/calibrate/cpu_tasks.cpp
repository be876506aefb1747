// Whole calls of the engine cpu: native products, and fused products of bytes.
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <vector>

#include "base/memory.hpp"
#include "base/settings.hpp"
#include "base/threads.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cpu/products.hpp"
#include "engines/cpu/profile.hpp"
#include "execute/execute.hpp"
#include "planner/expected_times.hpp"
#include "planner/plan.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core::calibrate {

namespace {

// Products by a scheme, or by the policy `emulate` as in calls that name no scheme.
struct Method {
  OperandType type;
  const char* scheme;  // nullptr: the policy emulate
  bool is_native = false;

  std::string text() const {
    return fmt::format("{} {}", type == OperandType::f64 ? "fp64" : "fp32",
                       scheme == nullptr ? "emulated" : scheme);
  }
};
constexpr std::array methods{
    Method{OperandType::f32, "native", true},    Method{OperandType::f64, "native", true},
    Method{OperandType::f64, nullptr},           Method{OperandType::f64, "ozaki2:moduli=20"},
    Method{OperandType::f32, "ozaki2:moduli=8"}, Method{OperandType::f32, nullptr},
    Method{OperandType::f32, "int8x6"}};

std::shared_ptr<const Plan> plan_of(const Method& method, const Shape& shape, int threads) {
  SettingLayer call;
  constexpr const char* where = "the calibration";
  call.set(find_setting("engine"), "cpu", where);
  call.set(find_setting("threads"), std::to_string(threads), where);
  if (method.scheme != nullptr) call.set(find_setting("scheme"), method.scheme, where);
  if (method.scheme == nullptr) call.set(find_setting("policy"), "emulate", where);
  const Problem problem{.m = shape.m,
                        .n = shape.n,
                        .k = shape.k,
                        .lda = shape.m,
                        .ldb = shape.k,
                        .ldc = shape.m,
                        .type = method.type};
  return std::make_shared<const Plan>(make_plan(problem, Settings(call, {}, {}, {}), {}));
}

// Random operands, which all shapes use, and C.
class CpuOperands {
 public:
  CpuOperands(OperandType type, const Shape& shape)
      : a_(filled(type, shape.m * shape.k)), b_(filled(type, shape.k * shape.n)),
        c_(Allocator{}, bytes(type, shape.m * shape.n)) {}

  Operands of(const HostBuffer& workspace) const {
    Operands operands;
    operands.a = a_.pointer();
    operands.b = b_.pointer();
    operands.c = c_.pointer();
    operands.workspace = workspace.pointer();
    operands.workspace_size = workspace.bytes();
    return operands;
  }

 private:
  static std::size_t bytes(OperandType type, std::int64_t count) {
    return static_cast<std::size_t>(count) * (type == OperandType::f64 ? sizeof(double) : sizeof(float));
  }
  template <class T>
  static void fill(void* target, std::int64_t count) {
    std::mt19937_64 random(1);
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<T*>(target)[i] =
          static_cast<T>(static_cast<double>(static_cast<std::int64_t>(random())) * 0x1p-63);
  }
  static HostBuffer filled(OperandType type, std::int64_t count) {
    HostBuffer memory(Allocator{}, bytes(type, count));
    type == OperandType::f64 ? fill<double>(memory.pointer(), count) : fill<float>(memory.pointer(), count);
    return memory;
  }

  HostBuffer a_, b_, c_;
};

// Seconds of a call; for calls of one thread on AMX the state of the unit meanwhile.
struct Timed {
  double seconds = 0;  // 0: the state changed in every call
  bool is_slow = false;
  const Candidate* candidate = nullptr;  // that multiplied
};

// Returns the shortest time of several calls, in the fast state of AMX if there were calls in it.
Timed shortest(const Plan& plan, const CpuOperands& operands, bool quick) {
  const int least_runs = quick ? 2 : 5;
  constexpr int most_runs = 50;
  const double enough_seconds = quick ? 0.03 : 0.1;
  const HostBuffer workspace(Allocator{}, plan.workspace_bytes);
  const bool varies = plan.threads == 1 && !plan.is_native();
  const auto is_slow = [&] { return varies && !measure_amx_is_fast().value_or(true); };
  std::array<double, 2> times{};  // fast, slow
  double spent = 0;
  Timed timed;
  for (int run = 0; run < most_runs && (run < least_runs || spent < enough_seconds); ++run) {
    Report report;
    const bool was_slow = is_slow();
    const auto start = std::chrono::steady_clock::now();
    execute(plan, operands.of(workspace), report);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    spent += seconds;
    for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
      if (report.items[i] > 0) timed.candidate = &plan.candidates[i];
    }
    if (was_slow != is_slow() || run == 0) continue;  // the first run warms up
    double& least = times[was_slow ? 1 : 0];
    if (least == 0 || seconds < least) least = seconds;
  }
  timed.is_slow = times[0] == 0;
  timed.seconds = times[timed.is_slow ? 1 : 0];
  return timed;
}

// Returns the costs that a candidate's time depends on, by their name in CpuThreadCosts. Empty if it has
// none: a scheme that was not meant accepted the operands.
std::string_view costs_of(const Candidate& candidate) {
  const SplitRule& rule = candidate.program.split_a;
  if (candidate.scheme == nullptr) return "native";
  return takes_residues(rule) ? "residues" : takes_digits(rule) ? "digits" : "";
}

double expected_microseconds(const CpuCosts& costs, const Plan& plan, const Timed& timed) {
  const CpuThreadCosts& of_threads = costs.with(plan.threads);
  const std::string_view name = costs_of(*timed.candidate);
  StepCosts steps = name == "digits" ? of_threads.digits : of_threads.residues;
  if (timed.is_slow) steps.product *= slow_amx;
  const ExpectedTimes times =
      expected_times(steps, of_threads.native, timed.candidate->program, plan.problem);
  return 1e-3 * of_threads.product_nanoseconds * (name == "native" ? times.native : times.emulated) /
         plan.threads;
}

void measure(const Method& method, const Shape& shape, int threads, bool quick,
             std::vector<CpuMeasurement>& measurements) {
  const std::shared_ptr<const Plan> plan = plan_of(method, shape, threads);
  const Timed timed = shortest(*plan, CpuOperands(method.type, shape), quick);
  if (timed.seconds == 0 || costs_of(*timed.candidate).empty()) return;
  // Short calls have fewer threads than they may have.
  measurements.push_back(
      {.kind = fmt::format("{}.{}", plan->threads > 1 ? "all" : "one", costs_of(*timed.candidate)),
       .what = fmt::format("{} {}, {} thread{}", method.text(), shape.text(), plan->threads,
                           plan->threads == 1 ? "" : "s"),
       .microseconds = 1e6 * timed.seconds,
       .expected = [=](const CpuCosts& costs) { return expected_microseconds(costs, *plan, timed); }});
}

std::vector<Shape> native_shapes(std::int64_t edge) {
  return {{16, 16, 16},
          {128, 128, 128},
          {edge, 8, edge},
          {edge, edge, 8},
          {edge / 2, edge / 2, edge / 2},
          {edge * 3 / 4, edge * 3 / 4, edge * 3 / 4}};
}

// Cubes, and shapes in which the split or the recombination takes much of the time.
std::vector<Shape> fused_shapes(std::int64_t edge) {
  return {{edge / 4, edge / 4, edge / 4},
          {edge / 2, edge / 2, edge / 2},
          {edge * 3 / 4, edge * 3 / 4, edge * 3 / 4},
          {edge, edge, edge / 16},
          {edge, edge / 16, edge},
          {edge / 8, edge / 8, 2 * edge}};
}

}  // namespace

int threads_of_calibration() { return usable_threads(surroundings_of({}).threads); }

std::vector<CpuTask> cpu_tasks(bool quick) {
  constexpr int many_threads = 8;
  std::vector<int> numbers{1};
  if (threads_of_calibration() > 1) numbers.push_back(threads_of_calibration());
  std::vector<CpuTask> tasks;
  for (const int threads : numbers) {
    const std::int64_t edge = threads < many_threads ? 2048 : 4096;
    for (const Method& method : methods) {
      if (!method.is_native && int8_choice().kernels->panels == nullptr) continue;
      for (const Shape& shape : method.is_native ? native_shapes(edge) : fused_shapes(edge))
        tasks.push_back({fmt::format("{} {}", method.text(), shape.text()),
                         [=](std::vector<CpuMeasurement>& measurements) {
                           measure(method, shape, threads, quick, measurements);
                         }});
    }
  }
  return tasks;
}

}  // namespace kintsugi::core::calibrate
