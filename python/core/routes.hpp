// Products that torch's own operators, and graphs of torch.compile, call by objects of Python.
#pragma once

#include "state.hpp"

namespace kintsugi_python {

// Returns a function of Python for torch's operator of a name: "mm", "bmm", "addmm" or "baddbmm", with ".out"
// or "_". It multiplies plain tensors, and calls `otherwise` with its own arguments for all else. With the
// names "gemm" and "gemm.out" it is torch.ops.kintsugi.gemm. Returns `otherwise` for any other name, and if
// torch is too old; null with a Python error.
Ref make_route(State& state, const char* name, PyObject* otherwise);

// Sets the accuracy of routes in threads that have none: a text or None.
void set_route_accuracy(PyObject* accuracy);

// Returns a dict from names in statistics to counts of calls that routes have multiplied since the last
// reset, without those of `otherwise`; null with a Python error.
Ref route_counts(bool reset);

}  // namespace kintsugi_python
