// Ceilings of a device: rates of its matrix units and of its memory, measured by kernels that do nothing
// else.
#pragma once

#include <string>
#include <vector>

#include "tools/measure/machine/device.hpp"

namespace kintsugi::measure {

struct Ceiling {
  std::string name;    // a format: operations per second, two a product; "copy": bytes per second, both ways
  std::string method;  // instruction or call that was measured
  double rate = 0;     // median of the runs
  double lowest = 0;
  double highest = 0;
  DeviceState state;  // during the runs
};

// Measures fp16, bf16, tf32, int8 and copy. Operands of the matrix units are random and stay in the SMs; runs
// are long enough for the device to reach its power limit. Results are compared with the host's sums; fails
// with device_error if they differ.
std::vector<Ceiling> measure_ceilings(const DeviceStream& stream, const DeviceFacts& facts,
                                      const DeviceMonitor& monitor);

}  // namespace kintsugi::measure
