// State of a thread between calls: its handle, and problem and options of its last product. The plan of that
// product can be made from them.
#pragma once

#include <kintsugi/kintsugi.h>

#include "options.hpp"

namespace kintsugi_python {

struct Thread {
  kintsugi_handle handle;
  bool has_product = false;  // true: the members below describe the thread's last product
  kintsugi_problem problem;
  Ref options[option_count];
  int device;

  void remember(const kintsugi_problem& new_problem, PyObject* const given[option_count], int new_device);
};

// Returns a capsule that owns a Thread. kintsugi/_abi.py keeps one for each handle.
Ref make_thread(PyObject* handle);
// Returns the capsule's Thread; nullptr, with a Python error, if the object is no such capsule.
Thread* thread_of(PyObject* capsule);

// Returns (problem as bytes, options, device) of the last product; None if there is none. Device -1 is the
// CPU.
Ref last_product(const Thread& thread);

}  // namespace kintsugi_python
