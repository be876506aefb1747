// Calibration: measures kernels and calls of the current device, fits the cost model to the measurements, and
// writes the device's profile.
#pragma once

#include <functional>
#include <string>

namespace kintsugi::core {

// Function that is called before each step. `done`: fraction of the work that is finished. `step`: name of
// the step.
using CalibrationProgress = std::function<void(double done, const std::string& step)>;

// Measures the device and writes its profile, which later calls use. Returns the name of the written file.
// Takes at most two minutes. `file`: file to write; empty: the file in which calls look for the profile.
// `quick`: fewer repetitions. `blind`: the fit begins with costs of other devices, even if the library has a
// profile of this device. Fails with engine_unavailable if there is no device that can be calibrated, and
// with bad_setting if the file cannot be written.
std::string calibrate_device(const std::string& file, bool quick, bool blind,
                             const CalibrationProgress& progress);

}  // namespace kintsugi::core
