#include "planner/candidates/device_times.hpp"

#include "planner/candidates/candidates.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

namespace {

std::optional<DeviceTimes> times_of(const Plan& plan, const Candidate& candidate, bool prepared_a,
                                    bool prepared_b) {
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
                                                .prepared_a = prepared_a,
                                                .prepared_b = prepared_b,
                                                .is_aligned = has_aligned_lines(problem)});
}

}  // namespace

std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate) {
  return times_of(plan, candidate, plan.problem.prepared_a, plan.problem.prepared_b);
}

std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate,
                                                 Slicing slicing) {
  const bool prepared = slicing == Slicing::both_prepared;
  return times_of(plan, candidate, prepared, prepared);
}

}  // namespace kintsugi::core
