// Calibration: measures kernels and calls of the current device, or of the CPU, fits the cost model to the
// measurements, and writes the profile.
#pragma once

#include <functional>
#include <string>

namespace kintsugi::core {

// Function that is called before each step. `done`: fraction of the work that is finished. `step`: name of
// the step.
using CalibrationProgress = std::function<void(double done, const std::string& step)>;

struct CalibrationOptions {
  std::string engine;  // cuda, cpu; empty: cuda where it can run, else cpu
  std::string file;    // to write; empty: the file in which calls look for the profile
  bool quick = false;  // fewer repetitions
  bool blind = false;  // the fit begins with costs of other devices, or with the library's for CPUs
};

// Measures the calling thread's device, or the CPU, and writes its profile, which later calls use. Returns
// the name of the written file. Takes at most two minutes. Fails with engine_unavailable if there is no
// device that can be calibrated, and with bad_setting if the file cannot be written or the engine has no
// costs.
std::string calibrate_device(const CalibrationOptions& options, const CalibrationProgress& progress);

}  // namespace kintsugi::core
