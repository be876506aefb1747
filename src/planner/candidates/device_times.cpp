#include "planner/candidates/device_times.hpp"

#include "planner/candidates/candidates.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

namespace {

// Properties of a problem, beside shape and type, on which expected times depend.
struct Circumstances {
  bool prepared_a = false;
  bool prepared_b = false;
  bool is_aligned = true;
  bool adds_to_c = false;
};

// Emulated FP32 products have no cost of reading C.
Circumstances circumstances_of(const Problem& problem) {
  const bool knows_updates = problem.type == OperandType::f64 || problem.complex;
  return {problem.prepared_a, problem.prepared_b, has_aligned_lines(problem),
          problem.adds_to_c && knows_updates};
}

std::optional<DeviceTimes> times_of(const Plan& plan, const Candidate& candidate,
                                    const Circumstances& circumstances) {
  const bool are_measured =
      is_fused(plan, candidate) || candidate.program.multiplies_elements() || candidate.acceptance.by_norms();
  if (!are_measured) return std::nullopt;
  const Problem& problem = plan.problem;
  return plan.engine->device()->expected_times({.schedule = candidate.program.schedule,
                                                .format = candidate.program.format().id,
                                                .type = element_type(problem),
                                                .m = problem.m,
                                                .n = problem.n,
                                                .k = problem.k,
                                                .items = problem.batch_count,
                                                .prepared_a = circumstances.prepared_a,
                                                .prepared_b = circumstances.prepared_b,
                                                .is_aligned = circumstances.is_aligned,
                                                .adds_to_c = circumstances.adds_to_c});
}

}  // namespace

std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate) {
  return times_of(plan, candidate, circumstances_of(plan.problem));
}

std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate,
                                                 Slicing slicing) {
  Circumstances circumstances = circumstances_of(plan.problem);
  circumstances.prepared_a = circumstances.prepared_b = slicing == Slicing::both_prepared;
  return times_of(plan, candidate, circumstances);
}

bool precedes_native(const Plan& plan, const Candidate& candidate) {
  // Measured on an H200: the kernel of the native candidate takes 1.1 to 1.3 times as long as cuBLAS for
  // n = 2048 to 8192 (lab/results/log/2026-11-27-any-number-of-moduli.md), and emulations take up to 1.15
  // times as long as expected below 2048. Circumstances must not change which candidates a chain has.
  constexpr double max_time_ratio = 1.04;
  const auto times = times_of(plan, candidate, Circumstances{});
  return !times || times->emulated < max_time_ratio * times->native;
}

}  // namespace kintsugi::core
