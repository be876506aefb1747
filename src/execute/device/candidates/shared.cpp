#include "execute/device/candidates/shared.hpp"

#include "engines/device_engine.hpp"
#include "execute/device/selection.hpp"
#include "planner/candidates/device.hpp"

namespace kintsugi::core {

namespace {

NormCandidates norm_candidates(const Plan& plan) {
  NormCandidates result;
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.acceptance.by_norms()) result.acceptances[result.count++] = candidate.acceptance;
  }
  result.coefficient = proved_coefficient(plan);
  return result;
}

}  // namespace

void select_from_long_chain(const Plan& plan, const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                            const DeviceScalars& scalars, DeviceSelection* selection,
                            const DeviceReporting& reporting) {
  plan.engine->device()->shared_kernels()->select(queue, a, b, scalars, norm_candidates(plan), selection,
                                                  reporting);
}

SharedSteps::SharedSteps(const Plan& plan, const Queue& queue, const DeviceSelection* selection)
    : kernels_(plan.engine->device()->shared_kernels()), queue_(&queue) {
  const auto shared = shared_candidates(plan);
  for (const Candidate& candidate : shared) rules_.push_back(candidate.program.split_a);
  selected_ = {.selection = selection,
               .first = static_cast<std::int32_t>(shared.data() - plan.candidates.data()),
               .least = rules_.front().slices,
               .most = rules_.back().slices};
}

void SharedSteps::split(std::span<const DeviceSplit> splits) const {
  kernels_->split(*queue_, splits, rules_, selected_);
}

void SharedSteps::multiply(const Schedule& schedule, const Slices& a, const Slices& b,
                           const Accumulators& sums) const {
  kernels_->multiply(*queue_, schedule, a, b, sums, selected_);
}

void SharedSteps::recombine(const Accumulators& sums, const DeviceTile& tile) const {
  kernels_->recombine(*queue_, sums, tile, selected_);
}

}  // namespace kintsugi::core
