// State of a thread between calls: its handle, and the data from which its last product's plan can be made.
#pragma once

#include <kintsugi/kintsugi.h>

#include "options.hpp"

namespace kintsugi_python {

struct Thread {
  kintsugi_handle handle;
  bool has_product = false;
  kintsugi_problem problem;
  Ref options[option_count];
  int device;

  void remember(const kintsugi_problem& new_problem, PyObject* const given[option_count], int new_device);
};

// A capsule that owns a Thread; kintsugi/_abi.py keeps one beside the handle.
Ref make_thread(PyObject* handle);
// Null with a Python error where the object is no such capsule.
Thread* thread_of(PyObject* capsule);

// None, or (problem as bytes, options, device) of the last product; device is -1 on the CPU.
Ref last_product(const Thread& thread);

}  // namespace kintsugi_python
