// Calibration: measures the kernels and calls of the current device, fits the cost model to them, and writes
// the device's profile.
#pragma once

#include <functional>
#include <string>

namespace kintsugi::core {

// Called before each step with the part of the work that is done, from 0 to 1, and the step's name.
using CalibrationProgress = std::function<void(double done, const std::string& step)>;

// Measures for at most two minutes, or, if `quick`, with fewer repetitions. Writes the profile to `file`, or,
// if that is empty, to the file in which calls look for it; later calls use it. Returns the file's name. With
// `blind` the fit does not begin with costs that are known of the device by its name. Fails with
// engine_unavailable without a device whose kernels have costs, and with bad_setting if the file cannot be
// written.
std::string calibrate_device(const std::string& file, bool quick, bool blind,
                             const CalibrationProgress& progress);

}  // namespace kintsugi::core
