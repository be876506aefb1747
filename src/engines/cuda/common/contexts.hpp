// CUDA contexts, to which objects of the library belong, and descriptions of devices for messages.
#pragma once

#include <string>

#include "base/cuda/cuda_driver.hpp"
#include "engines/device_context.hpp"

namespace kintsugi::core::cuda {

struct DeviceDescription {
  std::string name;
  int major = 0;  // compute capability
  int minor = 0;

  std::string text() const;  // "NVIDIA H200, compute capability 9.0"
};

DeviceDescription describe_device(Device device);

// CUDA's implementation of DeviceContexts.
const DeviceContexts& contexts();

const DeviceTransfers& transfers();

}  // namespace kintsugi::core::cuda
