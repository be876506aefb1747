// Asks the CUDA driver where pointers of a caller point, if the program has loaded the driver.
#pragma once

#include "base/cuda/cuda_driver.hpp"

namespace kintsugi::core::cuda {

// Memory that a pointer points to. Memory that the driver does not know is the host's, and so is pinned host
// memory. Managed memory belongs to a device.
struct PointerLocation {
  bool on_device = false;
  bool managed = false;
  int device = 0;             // index of the device, if on_device
  Context context = nullptr;  // context of the memory; nullptr: of no context, as memory of a pool is
};

// True if the program has loaded the driver. Loads nothing itself, and takes 15 ns if no driver is loaded:
// programs without a GPU pay no more for calls that may get device pointers. False in a child of the process
// that loaded the driver, since no function of the driver may be called there.
bool is_driver_loaded();

// Asks the driver. Precondition: is_driver_loaded().
PointerLocation location_of(const void* pointer);

}  // namespace kintsugi::core::cuda
