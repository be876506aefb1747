#include <array>
#include <memory>

#include "base/settings.hpp"
#include "base/status.hpp"
#include "base/text/format_text.hpp"
#include "calibrate/tasks.hpp"
#include "engines/cuda/arch/profile.hpp"
#include "engines/cuda/gemm/int8/int8_gemm.hpp"
#include "engines/cuda/gemm/multi_term/multi_term_gemm.hpp"
#include "execute/execute.hpp"
#include "planner/element_type.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core::calibrate {

namespace {

Problem problem_of(OperandType type, bool is_complex, const Shape& shape) {
  return {.m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .lda = shape.m,
          .ldb = shape.k,
          .ldc = shape.m,
          .type = type,
          .complex = is_complex,
          .memory = MemorySpace::device};
}

Plan emulating_plan(const Problem& problem) {
  SettingLayer call;
  call.set(find_setting("policy"), "emulate", "the calibration");
  call.set(find_setting("engine"), "cuda", "the calibration");
  return make_plan(problem, Settings(call, {}, {}, {}), {});
}

// The emulation whose time is expected: that of the first candidate, or, if it accepts by mean depth, of the
// second, which costs as much.
const Candidate& modelled_candidate(const Plan& plan) {
  const Candidate& first = plan.candidates.front();
  return first.acceptance.mean_depth > 0 && plan.candidates.size() > 1 ? plan.candidates[1] : first;
}

void measure(Workbench& bench, const Problem& problem, const std::string& what,
             std::vector<Measurement>& measurements) {
  const auto plan = std::make_shared<const Plan>(emulating_plan(problem));
  const Candidate& candidate = modelled_candidate(*plan);
  if (candidate.scheme == nullptr) return;  // nothing emulates this problem
  const ElementType type = element_type(problem);
  const DeviceShape shape{candidate.program.schedule,
                          candidate.program.format().id,
                          type,
                          problem.m,
                          problem.n,
                          problem.k,
                          1,
                          false,
                          false};
  const auto expected = [plan, shape](const cuda::Costs& costs) {
    return (shape.format == FormatId::int8 ? cuda::expected_residue_times(shape, costs)
                                           : cuda::expected_multi_term_times(shape, costs))
        .emulated;
  };
  const std::size_t width = element_bytes(type);
  const std::size_t a_bytes = static_cast<std::size_t>(problem.m * problem.k) * width;
  const std::size_t b_bytes = static_cast<std::size_t>(problem.k * problem.n) * width;
  bench.fill(type);
  const cuda::OwnedMemory workspace(plan->workspace_bytes);
  const double measured =
      bench.microseconds(expected(cuda::current_costs()), [&](const Queue& queue, int step) {
        Operands operands;
        operands.a = bench.numbers(a_bytes, 2 * step);
        operands.b = bench.numbers(b_bytes, 2 * step + 1);
        operands.c = bench.results();
        operands.workspace = workspace.data();
        operands.workspace_size = workspace.bytes();
        operands.queue = queue;
        Report report;
        execute(*plan, operands, report);
      });
  const std::string kind = type == ElementType::f32 ? "calls" : fmt::format("residues_{}", what.substr(0, 3));
  measurements.push_back({kind, what, measured, expected});
}

}  // namespace

std::vector<Task> call_tasks(Workbench& bench) {
  constexpr std::array shapes{Shape{512, 512, 512},    Shape{1024, 1024, 1024}, Shape{1536, 1536, 1536},
                              Shape{2048, 2048, 2048}, Shape{4096, 4096, 1024}, Shape{4096, 4096, 4096},
                              Shape{1024, 1024, 8192}, Shape{8192, 4096, 128},  Shape{512, 8192, 2048}};
  struct Type {
    const char* name;
    OperandType type;
    bool is_complex;
  };
  constexpr std::array types{Type{"f32", OperandType::f32, false}, Type{"f64", OperandType::f64, false},
                             Type{"c32", OperandType::f32, true}, Type{"c64", OperandType::f64, true}};
  std::vector<Task> tasks;
  for (const Type& type : types) {
    for (const Shape& shape : shapes) {
      const std::string what = fmt::format("{} {}", type.name, shape.text());
      const Problem problem = problem_of(type.type, type.is_complex, shape);
      tasks.push_back({"calls, " + what, [&bench, problem, what](std::vector<Measurement>& measurements) {
                         measure(bench, problem, what, measurements);
                       }});
    }
  }
  return tasks;
}

}  // namespace kintsugi::core::calibrate
