#include "planner/candidates/norms/shared.hpp"

#include "engines/device_engine.hpp"
#include "engines/device_shared_kernels.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

namespace {

bool is_proved_by_norms(const Candidate& candidate) {
  return candidate.acceptance.by_norms() && !candidate.checked;
}

}  // namespace

bool may_share_kernels(const Plan& plan, const Candidate& least, const Candidate& most) {
  const DeviceEngine* device = plan.engine->device();
  if (device == nullptr || device->shared_kernels() == nullptr || plan.problem.complex) return false;
  const SplitRule& first = least.program.split_a;
  const SplitRule& last = most.program.split_a;
  return first == least.program.split_b && last == most.program.split_b &&
         device->shared_kernels()->take(element_type(plan.problem), first, last);
}

bool has_long_chain(const Plan& plan) {
  return plan.candidates.size() > DeviceReport::max_candidates && !shared_candidates(plan).empty();
}

std::span<const Candidate> shared_candidates(const Plan& plan) {
  constexpr std::size_t fewest_candidates = 4;  // two that share kernels, between the first one and native
  const std::vector<Candidate>& candidates = plan.candidates;
  if (candidates.size() < fewest_candidates || candidates.size() > LongDeviceReport::max_candidates ||
      candidates.back().scheme != nullptr || !candidates.back().acceptance.any_range())
    return {};
  const std::span shared(candidates.begin() + 1, candidates.end() - 1);
  if (!is_proved_by_norms(candidates.front())) return {};
  for (std::size_t i = 0; i < shared.size(); ++i) {
    const bool is_next =
        shared[i].program.split_a.slices == shared.front().program.split_a.slices + static_cast<int>(i);
    if (!is_proved_by_norms(shared[i]) || !is_next) return {};
  }
  return may_share_kernels(plan, shared.front(), shared.back()) ? shared : std::span<const Candidate>{};
}

}  // namespace kintsugi::core
