// Power and clocks of a device, as its management library (NVML) says them.
#pragma once

#include <optional>
#include <string>

namespace kintsugi::lab {

// Nothing where the library or the device does not say it.
struct DeviceState {
  std::optional<double> power_watts;
  std::optional<double> clock_mhz;  // of the SMs
};

// At most.
struct DeviceLimits {
  std::optional<double> power_watts;
  std::optional<double> clock_mhz;
  std::optional<double> memory_clock_mhz;
};

class DeviceMonitor {
 public:
  // `pci_address` as DeviceFacts has it.
  explicit DeviceMonitor(const std::string& pci_address);

  DeviceLimits limits() const;
  DeviceState now() const;

 private:
  void* device_ = nullptr;
};

}  // namespace kintsugi::lab
