// Calibration: measures the kernels and calls of the current device, fits the cost model to them, and writes
// the device's profile.
#pragma once

#include <functional>
#include <string>

namespace kintsugi::core {

// Called before each step with the part of the work that is done, from 0 to 1, and the step's name.
using CalibrationProgress = std::function<void(double done, const std::string& step)>;

// Measures for at most two minutes, or, if `quick`, with fewer repetitions. Writes the
// profile to `file`, or, if it is empty, to where calls look for it; calls plan by it from then on. Returns
// the file's name. `blind`: nothing that is known of the device by its name is used. Fails with
// engine_unavailable without a device whose kernels have costs, and with bad_setting if the file cannot be
// written.
std::string calibrate_device(const std::string& file, bool quick, bool blind,
                             const CalibrationProgress& progress);

}  // namespace kintsugi::core
