#include "execute/device/selection.hpp"

#include "base/status.hpp"
#include "engines/device_selection.hpp"
#include "planner/workspace/device.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

double proved_coefficient(const Plan& plan) {
  return ElementDemand{plan.contract.coefficient, unit_roundoff(plan.problem.type)}.max_deviation();
}

DeviceCandidates candidates_on_device(const Plan& plan) {
  DeviceCandidates result;
  result.count =
      static_cast<int>(plan.is_checked() ? product_candidates(plan).size() : plan.candidates.size());
  if (result.count > DeviceReport::max_candidates)
    fail(Status::internal, "the plan has {} candidates to select among; the device takes {}", result.count,
         DeviceReport::max_candidates);
  for (int c = 0; c < result.count; ++c)
    result.acceptances[c] = plan.candidates[static_cast<std::size_t>(c)].acceptance;
  result.coefficient = proved_coefficient(plan);
  const Candidate& first = plan.candidates.front();
  result.fits = first.scheme->fits_residuals();
  result.format = first.program.format();
  result.residual_exponent = first.program.split_a.residual_exponent;
  return result;
}

}  // namespace kintsugi::core
