// State of a thread between calls: its handle, and its last product.
#pragma once

#include <kintsugi/kintsugi.h>

#include "arguments.hpp"
#include "state.hpp"

namespace kintsugi_python {

// The thread's last product has a plan, or was a call of kintsugi_gemm, of which the plan can be made from
// problem and options.
struct Thread {
  kintsugi_handle handle = nullptr;
  Ref plan;               // capsule of plan.hpp
  bool has_call = false;  // true: the members below describe the last product
  kintsugi_problem problem;
  Ref options[option_count];
  int device;

  ~Thread();
  void note_call(const kintsugi_problem& new_problem, PyObject* const given[option_count], int new_device);
  void note_plan(PyObject* capsule);
};

// Returns the state of the calling thread, which is made by the first call; nullptr with a Python error.
Thread* this_thread(State& state);

// Returns the plan of the last product; (problem, options, device) if it was a call of kintsugi_gemm, where
// device -1 is the CPU; None if there was none.
Ref last_product(const Thread& thread);

}  // namespace kintsugi_python
