// A CUDA device for measurements, through the driver's functions and, for power and clocks, its management
// library (NVML).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/cuda/owned.hpp"

namespace kintsugi::measure {

struct DeviceFacts {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;
  int driver_version = 0;  // CUDA 13.0: 13000
  int sms = 0;
  std::int64_t l2_bytes = 0;
  std::string pci_address;  // written as the management library writes it
};

// Returns why no device can be used; empty if one can.
std::string device_missing_reason();

// Returns the facts of the device of the thread's context; a thread without a context works on the first
// device from then on, as in the engine.
DeviceFacts device_facts();

using DeviceMemory = core::cuda::OwnedMemory;
using DeviceStream = core::cuda::OwnedStream;
using DeviceGraph = core::cuda::OwnedGraph;

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
