#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/times.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"
#include "planner/problem.hpp"

namespace kintsugi::core::calibrate {

namespace {

struct CallType {
  const char* name;
  OperandType type;  // for complex elements the type of their parts
  bool is_complex;
};

enum class OperandB : bool { given, prepared };

// Beta of a measured call. -1 and 1 are computed by the same kernels.
enum class Beta { zero, minus_one };

Problem problem_of(const CallType& type, const Shape& shape, OperandB b, Beta beta) {
  return {.m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .lda = shape.m,
          .ldb = shape.k,
          .ldc = shape.m,
          .type = type.type,
          .complex = type.is_complex,
          .memory = MemorySpace::device,
          .prepared_b = b == OperandB::prepared,
          .adds_to_c = beta != Beta::zero};
}

// Returns a plan with the emulations of the policy `auto`, even if native is expected to be faster. The
// policy `emulate` is not used, since its chain may be longer: early exits of further kernels would be
// measured, too.
Plan emulating_plan(const Problem& problem) {
  SettingLayer call;
  call.set(find_setting("policy"), "auto", "the calibration");
  call.set(find_setting("engine"), "cuda", "the calibration");
  return make_emulating_plan(problem, Settings(call, {}, {}, {}));
}

// Operands of repeated calls. Consecutive calls get different matrices A and B, so that no matrix is in a
// cache. B may be prepared.
class CallOperands {
 public:
  CallOperands(Workbench& bench, const std::shared_ptr<const Plan>& plan)
      : bench_(bench), plan_(plan), workspace_(plan->workspace_bytes) {
    const Problem& problem = plan->problem;
    const std::size_t width = element_bytes(element_type(problem));
    a_bytes_ = static_cast<std::size_t>(problem.m * problem.k) * width;
    b_bytes_ = static_cast<std::size_t>(problem.k * problem.n) * width;
    bench.fill(element_type(problem));
    if (!problem.prepared_b) return;
    for (int i = 0; i < std::max(2, matrices_beyond_caches(b_bytes_)); ++i)
      prepared_.push_back(prepare(*plan, Side::b, bench.matrix(b_bytes_, i), Original::borrowed));
  }

  void execute(const Queue& queue, int step) const {
    Operands operands;
    operands.beta = CallScalar(plan_->problem.adds_to_c ? -1 : 0);
    operands.a = bench_.matrix(a_bytes_, 2 * step);
    operands.b = bench_.matrix(b_bytes_, 2 * step + 1);
    if (!prepared_.empty()) {
      operands.b = nullptr;
      operands.prepared_b = &prepared_[static_cast<std::size_t>(step) % prepared_.size()];
    }
    operands.c = bench_.results();
    operands.workspace = workspace_.data();
    operands.workspace_size = workspace_.bytes();
    operands.queue = queue;
    Report report;
    core::execute(*plan_, operands, report);
  }

 private:
  const Workbench& bench_;
  std::shared_ptr<const Plan> plan_;
  cuda::OwnedMemory workspace_;
  std::size_t a_bytes_ = 0;
  std::size_t b_bytes_ = 0;
  std::vector<Prepared> prepared_;
};

// Returns the shape by which `auto` computes the expected time of the plan's emulation.
DeviceShape shape_of(const Plan& plan) {
  const Problem& problem = plan.problem;
  const Program& program = plan.prepared_candidate().program;
  return {.schedule = program.schedule,
          .format = program.format().id,
          .type = element_type(problem),
          .m = problem.m,
          .n = problem.n,
          .k = problem.k,
          .items = 1,
          .prepared_a = problem.prepared_a,
          .prepared_b = problem.prepared_b,
          .is_aligned = true,
          .adds_to_c = problem.adds_to_c};
}

void measure(Workbench& bench, const std::string& kind, const std::string& what, const Problem& problem,
             std::vector<Measurement>& measurements) {
  const auto plan = std::make_shared<const Plan>(emulating_plan(problem));
  if (plan->prepared_candidate().scheme == nullptr) return;  // this problem has no emulation
  const DeviceShape shape = shape_of(*plan);
  if (!cuda::expected_times(shape)) return;  // cuBLAS multiplies the slices, for which there are no costs
  const CallOperands operands(bench, plan);
  // The schedule of `shape` is the plan's.
  const auto expected = [plan, shape](const cuda::Costs& costs) {
    return cuda::expected_emulation_times(shape, costs).emulated;
  };
  const double measured = bench.microseconds(
      expected(cuda::current_costs()), [&](const Queue& queue, int step) { operands.execute(queue, step); });
  measurements.push_back({kind, what, measured, expected});
}

Task call_task(Workbench& bench, const std::string& kind, const CallType& type, const Shape& shape,
               OperandB b, Beta beta) {
  const std::string what =
      fmt::format("{} {}{}{}", type.name, shape.text(), b == OperandB::prepared ? ", B prepared" : "",
                  beta == Beta::zero ? "" : ", beta -1");
  return {"calls, " + what, [=, &bench](std::vector<Measurement>& measurements) {
            measure(bench, kind, what, problem_of(type, shape, b, beta), measurements);
          }};
}

constexpr CallType single_precision{"f32", OperandType::f32, false};

}  // namespace

std::vector<Task> call_tasks(Workbench& bench) {
  constexpr std::array shapes{Shape{512, 512, 512},    Shape{1024, 1024, 1024}, Shape{1536, 1536, 1536},
                              Shape{2048, 2048, 2048}, Shape{4096, 4096, 1024}, Shape{4096, 4096, 4096},
                              Shape{1024, 1024, 8192}, Shape{8192, 4096, 128},  Shape{512, 8192, 2048},
                              Shape{8192, 4096, 48},   Shape{1024, 16384, 96},  Shape{8192, 4096, 512}};
  struct Kind {
    const char* name;
    CallType type;
  };
  constexpr std::array kinds{Kind{"calls", single_precision},
                             Kind{"residues_f64", {"f64", OperandType::f64, false}},
                             Kind{"residues_c32", {"c32", OperandType::f32, true}},
                             Kind{"residues_c64", {"c64", OperandType::f64, true}}};
  std::vector<Task> tasks;
  for (const Kind& kind : kinds) {
    for (const Shape& shape : shapes) {
      tasks.push_back(call_task(bench, kind.name, kind.type, shape, OperandB::given, Beta::zero));
      // There are no costs of FP32 calls that depend on beta.
      if (&kind != kinds.data())
        tasks.push_back(call_task(bench, kind.name, kind.type, shape, OperandB::given, Beta::minus_one));
    }
  }
  return tasks;
}

// Returns tasks for products of a few rows by a square matrix, as in inference, and for square products.
std::vector<Task> prepared_call_tasks(Workbench& bench) {
  std::vector<Task> tasks;
  for (const std::int64_t n : {4096, 8192}) {
    for (const std::int64_t rows : {1, 2, 4, 8, 16, 32, 64})
      tasks.push_back(
          call_task(bench, "prepared_calls", single_precision, {rows, n, n}, OperandB::prepared, Beta::zero));
  }
  for (const std::int64_t n : {512, 1024, 2048, 4096})
    tasks.push_back(
        call_task(bench, "prepared_calls", single_precision, {n, n, n}, OperandB::prepared, Beta::zero));
  return tasks;
}

}  // namespace kintsugi::core::calibrate
