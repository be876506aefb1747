#include "planner/candidates/strassen.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "engines/device_engine.hpp"
#include "planner/candidates/device_times.hpp"
#include "planner/candidates/norms/shared.hpp"
#include "planner/element_type.hpp"
#include "schemes/ozaki2.hpp"

namespace kintsugi::core {

namespace {

// Returns the candidate with products by Strassen's algorithm, if it is expected to take less time so.
std::optional<Candidate> faster_by_strassen(const Plan& plan, const Candidate& candidate) {
  constexpr double max_time_ratio = 0.955;  // a larger workspace may have to be mapped for every call
  const Problem& problem = plan.problem;
  if (!candidate.acceptance.by_norms() || candidate.checked ||
      !plan.engine->device()->takes_strassen(element_type(problem), candidate.program.split_a))
    return std::nullopt;
  Candidate divided = candidate;
  schemes::multiply_by_strassen(divided.program);
  const auto time = expected_device_times(plan, candidate);
  const auto divided_time = expected_device_times(plan, divided);
  if (!time || !divided_time || divided_time->emulated > max_time_ratio * time->emulated) return std::nullopt;
  return divided;
}

}  // namespace

bool multiplies_by_strassen(const Plan& plan) {
  return std::ranges::any_of(plan.candidates,
                             [](const Candidate& candidate) { return candidate.program.schedule.strassen; });
}

Plan without_strassen(Plan plan) {
  for (Candidate& candidate : plan.candidates) {
    if (candidate.program.schedule.strassen) schemes::multiply_without_strassen(candidate.program);
  }
  return plan;
}

void multiply_by_strassen_if_faster(Plan& plan) {
  const Problem& problem = plan.problem;
  // Splits of lines that are not aligned lose more time than the products gain.
  if (plan.engine->device() == nullptr || problem.prepared_a || problem.prepared_b ||
      !has_aligned_lines(problem))
    return;
  const Candidate for_prepared = plan.prepared_candidate();
  const auto shared = shared_candidates(plan);
  const std::size_t separate = plan.candidates.size() - (shared.empty() ? 0 : shared.size() + 1);
  for (Candidate& candidate : std::span(plan.candidates).first(separate)) {
    if (auto faster = faster_by_strassen(plan, candidate)) candidate = *std::move(faster);
  }
  if (plan.candidates.front().program.schedule.strassen) plan.candidate_when_prepared = for_prepared;
  const std::size_t limit = plan.request.workspace_limit;
  if (limit != 0 && workspace_bytes(plan, {problem.m, problem.n}) > limit)
    plan = without_strassen(std::move(plan));
}

}  // namespace kintsugi::core
