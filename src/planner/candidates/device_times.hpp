// Expected times of a candidate on a device.
#pragma once

#include <optional>

#include "engines/device_engine.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Returns the expected times of a call that the candidate computes, on the plan's device. Returns nothing if
// the device's times, or the candidate's, were not measured. Precondition: no extent of the problem is 0.
std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate);

// Does the same for a call in which both operands have slices of the candidate already, or in which neither
// has, whatever the problem says.
enum class Slicing : bool { none_prepared, both_prepared };
std::optional<DeviceTimes> expected_device_times(const Plan& plan, const Candidate& candidate,
                                                 Slicing slicing);

// True if the candidate, which is not the first of its chain, is expected to take less time than the native
// candidate after it, or if no time is known. Prepared operands, leading dimensions and the problem's hints
// have no influence, since they must not change the bits of an emulated C.
bool precedes_native(const Plan& plan, const Candidate& candidate);

}  // namespace kintsugi::core
