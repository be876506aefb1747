// Candidates that share kernels on a device (engines/device_shared_kernels.hpp).
#pragma once

#include <span>

#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the candidates that share kernels: all that norms prove except the first, if they have successive
// numbers of moduli, native follows them, and the device has such kernels. Otherwise nothing: then every
// candidate has kernels of its own.
std::span<const Candidate> shared_candidates(const Plan& plan);

// True if the plan has candidates that share kernels, and more than a DeviceReport counts. Its candidates are
// selected by DeviceSharedKernels::select() and counted in a LongDeviceReport.
bool has_long_chain(const Plan& plan);

// True if candidates by norms of `least` to `most` moduli may share kernels in a plan of this problem. Their
// early exits then take the time of those of one candidate.
bool may_share_kernels(const Plan& plan, const Candidate& least, const Candidate& most);

}  // namespace kintsugi::core
