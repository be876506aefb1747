#include "execute/device/selection.hpp"

#include "planner/workspace/device.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

DeviceCandidates candidates_on_device(const Plan& plan) {
  DeviceCandidates result;
  result.count =
      static_cast<int>(plan.is_checked() ? product_candidates(plan).size() : plan.candidates.size());
  for (int c = 0; c < result.count; ++c)
    result.acceptances[c] = plan.candidates[static_cast<std::size_t>(c)].acceptance;
  const ElementDemand demand{plan.contract.coefficient, unit_roundoff(plan.problem.type)};
  result.coefficient = demand.max_deviation();
  const Candidate& first = plan.candidates.front();
  result.fits = first.scheme->fits_residuals();
  result.format = first.program.format();
  result.residual_exponent = first.program.split_a.residual_exponent;
  return result;
}

}  // namespace kintsugi::core
