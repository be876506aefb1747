// A CUDA device for measurements, through the driver's functions alone.
#pragma once

#include <cstdint>
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

}  // namespace kintsugi::measure
