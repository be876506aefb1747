#include "planner/candidates/device_times.hpp"

#include "planner/candidates/candidates.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

namespace {

// Storage of the operands of a call.
struct Storage {
  bool prepared_a = false;
  bool prepared_b = false;
  bool is_aligned = true;
};

std::optional<DeviceTimes> times_of(const Plan& plan, const Candidate& candidate, const Storage& storage) {
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
                                                .prepared_a = storage.prepared_a,
                                                .prepared_b = storage.prepared_b,
                                                .is_aligned = storage.is_aligned});
}

}  // namespace

std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate) {
  const Problem& problem = plan.problem;
  return times_of(plan, candidate, {problem.prepared_a, problem.prepared_b, has_aligned_lines(problem)});
}

std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate,
                                                 Slicing slicing) {
  const bool prepared = slicing == Slicing::both_prepared;
  return times_of(plan, candidate, {prepared, prepared, has_aligned_lines(plan.problem)});
}

bool precedes_native(const Plan& plan, const Candidate& candidate) {
  // Measured on an H200 for n = 2048 to 8192: the kernel of the native candidate takes 1.1 to 1.3 times as
  // long as is expected of cuBLAS, and emulations take 0.8 to 0.9 of their expected times
  // (docs/results/log/2026-11-27-any-number-of-moduli.md).
  constexpr double max_time_ratio = 1.4;
  const auto times = times_of(plan, candidate, Storage{});
  return !times || times->emulated < max_time_ratio * times->native;
}

}  // namespace kintsugi::core
