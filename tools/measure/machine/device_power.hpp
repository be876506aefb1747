// Power and clocks of a device, read from its management library (NVML).
#pragma once

#include <optional>
#include <string>

namespace kintsugi::measure {

// Current power and clock; empty if the library or the device does not report them.
struct DeviceState {
  std::optional<double> power_watts;
  std::optional<double> clock_mhz;  // clock of the SMs
};

// Largest power and clocks.
struct DeviceLimits {
  std::optional<double> power_watts;
  std::optional<double> clock_mhz;
  std::optional<double> memory_clock_mhz;
};

class DeviceMonitor {
 public:
  // `pci_address`: as in DeviceFacts.
  explicit DeviceMonitor(const std::string& pci_address);

  DeviceLimits limits() const;
  DeviceState now() const;

 private:
  void* device_ = nullptr;
};

}  // namespace kintsugi::measure
