// What a device can do at most: rates of its matrix units and of its memory, measured by kernels that do
// nothing else.
#pragma once

#include <string>
#include <vector>

#include "lab/machine/device.hpp"
#include "lab/machine/device_power.hpp"

namespace kintsugi::lab {

struct Ceiling {
  std::string name;  // a format: operations a second, two a product; "copy": bytes a second, read and written
  std::string way;   // the instruction or call that does it
  double rate = 0;   // the median of the runs
  double lowest = 0;
  double highest = 0;
  DeviceState state;  // while it ran
};

// fp16, bf16, tf32, int8 and copy. Operands of the units are random and never leave the SMs; runs
// are long enough for the device to settle at its power limit. What comes out is compared with the host's
// sums; fails with device_error where it differs.
std::vector<Ceiling> measure_ceilings(const DeviceStream& stream, const DeviceFacts& facts,
                                      const DeviceMonitor& monitor);

}  // namespace kintsugi::lab
