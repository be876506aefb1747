// Calibration: measures the kernels and calls of the current device, fits the cost model to them, and writes
// the device's profile.
#pragma once

#include <functional>
#include <string>

namespace kintsugi::core {

// Called before each step with the fraction of the work that is done, from 0 to 1, and the step's name.
using CalibrationProgress = std::function<void(double done, const std::string& step)>;

// Measures for at most two minutes, or with fewer repetitions if `quick`. Writes the profile, which later
// calls use, to `file`, or to the file in which calls look for it if `file` is empty. Returns the file's
// name. With `blind` the fit begins with costs of other devices, even if the library has a profile of this
// device. Fails with engine_unavailable if there is no device with kernels that can be calibrated, and with
// bad_setting if the file cannot be written.
std::string calibrate_device(const std::string& file, bool quick, bool blind,
                             const CalibrationProgress& progress);

}  // namespace kintsugi::core
