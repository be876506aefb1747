// Operands and result of a call, in the form that the steps on a device use.
#pragma once

#include "engines/device.hpp"
#include "execute/device/prepare.hpp"

namespace kintsugi::core {

struct DeviceOperands {
  DeviceMatrix a;
  DeviceMatrix b;
  DeviceMatrix c;
  DeviceScalars scalars;
  const DevicePrepared* prepared_a = nullptr;
  const DevicePrepared* prepared_b = nullptr;
  DeviceReport* report = nullptr;
};

}  // namespace kintsugi::core
