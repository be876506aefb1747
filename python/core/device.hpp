// CUDA's driver, for arrays of libraries whose memory and current device are not known.
#pragma once

#include <cstddef>

#include "ref.hpp"

namespace kintsugi_python {

// The functions return null with a Python error: OSError if there is no driver, MemoryError if the device has
// no memory left, RuntimeError for other errors of the driver.

// Makes the device's primary context the thread's current context. Returns the context that was current, as a
// number for leave_device().
Ref enter_device(int device);
Ref leave_device(PyObject* outer);

// Returns (address, owner) of new memory of the current device. The owner is a capsule. When it is deleted,
// the memory is freed, after all work of its device.
Ref allocate_on_device(int device, size_t bytes);

}  // namespace kintsugi_python
