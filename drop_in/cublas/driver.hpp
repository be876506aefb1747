// The CUDA driver's current device. The driver that the program has loaded is asked; none is loaded for it.
#pragma once

#include <cstdint>
#include <optional>

namespace kintsugi::cublas {

// Number (CUdevice) of the device whose context is current in this thread; nothing if there is no driver or no
// current context. Makes no context.
std::optional<int> current_device();

// Bytes of a device's memory; 0 if the driver does not tell.
std::int64_t memory_bytes(int device);

}  // namespace kintsugi::cublas
