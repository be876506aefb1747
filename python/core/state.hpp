// State of the module: functions of the library that tests replace, classes and functions of Python, and the
// device memory that the library uses.
#pragma once

#include <kintsugi/kintsugi.h>

#include "numpy.hpp"
#include "ref.hpp"
#include "torch.hpp"

namespace kintsugi_python {

// Functions of the library that compute. Tests and measurements replace them (replace() in module.cpp).
struct Library {
  decltype(&kintsugi_gemm) gemm = kintsugi_gemm;
  decltype(&kintsugi_plan_create) plan_create = kintsugi_plan_create;
  decltype(&kintsugi_plan_execute) plan_execute = kintsugi_plan_execute;
};

struct State;

// Data of the library's allocator callbacks, which allocate arrays of Python on one device.
struct DeviceMemory {
  State* state = nullptr;
  int device = 0;
  // Function (bytes, alignment) -> (address, owner of the memory) of a plan that names one; empty: torch
  // allocates. The object for torch serves every call on the device, so that repeated calls have equal
  // options.
  Ref allocate;
  Ref held;  // dict from addresses to the owners of the memory that the library has
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
  Ref write_log;               // kintsugi._log.write: takes the library's log lines
  Ref thread_key;              // key of this module's Thread in the dict of a thread
  bool host_is_ready = false;  // set by accept_host() (module.cpp)
  DeviceMemory memory[max_devices];
};

}  // namespace kintsugi_python
