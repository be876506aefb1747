// State of the module: the library's functions, classes and functions of Python, and the device memory that
// the library uses.
#pragma once

#include <kintsugi/kintsugi.h>

#include "numpy.hpp"
#include "ref.hpp"
#include "torch.hpp"

namespace kintsugi_python {

// Functions of the library that the package has loaded. This module is not linked with the library.
struct Library {
  decltype(&kintsugi_gemm) gemm = nullptr;
  decltype(&kintsugi_plan_execute) plan_execute = nullptr;
  decltype(&kintsugi_status_name) status_name = nullptr;
  decltype(&kintsugi_last_error) last_error = nullptr;
};

struct State;

// Data of the library's allocator callbacks, which allocate torch tensors on one device. One object serves
// every call on the device, so that repeated calls have equal options.
struct DeviceMemory {
  State* state = nullptr;
  int device = 0;
  Ref held;  // dict from addresses to the tensors whose memory the library has
  // Workspace of an earlier call in the null stream, for the next call in that stream. The stream's order
  // keeps the work of both calls apart.
  Ref spare;
  uintptr_t spare_address = 0;
  size_t spare_bytes = 0;
};

inline constexpr int max_devices = 64;

struct State {
  Library library;
  Numpy numpy;
  Torch torch;
  Ref error_class;             // kintsugi.KintsugiError
  Ref note_write;              // kintsugi._torch.note_write: tells torch that a tensor was modified in place
  bool host_is_ready = false;  // set by accept_host() (module.cpp)
  DeviceMemory memory[max_devices];
};

}  // namespace kintsugi_python
