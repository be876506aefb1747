// Products that torch's own operators, and graphs of torch.compile, call by objects of Python.
#pragma once

#include "state.hpp"

namespace kintsugi_python {

// Returns a function of Python for torch's operator of a name: "mm", "bmm", "addmm" or "baddbmm", with ".out"
// or "_". It multiplies plain tensors, and calls `otherwise` with its own arguments for all else. With the
// name "gemm" it is torch.ops.kintsugi.gemm with the arguments (a, b, c, accuracy, *, out). Returns null with
// a Python error. Precondition: register_operators() has returned true.
Ref make_route(State& state, const char* name, PyObject* otherwise);

// Sets the accuracy of routes in threads that have none: a text or None.
void set_route_accuracy(PyObject* accuracy);

// Returns a dict from names in statistics to counts of calls that routes have multiplied since the last
// reset, without those of `otherwise`; null with a Python error.
Ref route_counts(bool reset);

// True if the loaded torch has what routes need. Precondition: that of make_route().
bool has_routes();

}  // namespace kintsugi_python
