// Kernels of torch.ops.kintsugi, for a torch with LibTorch's stable ABI. _torch_ops.py defines the
// operators, and has all that is not here: gradients, transforms, and products of operands that are not
// plain.
#pragma once

#include "state.hpp"

namespace kintsugi_python {

// Registers the kernels. Returns false if torch is too old for them. `thread_accuracy`: function of Python
// that returns the accuracy that use() has set in the calling thread, else its argument.
bool register_operators(State& state, PyObject* thread_accuracy);

// From now on kernels ask for the thread's accuracy, which takes time.
void note_use();

// Returns the accuracy, a text or None, that use() has set in the calling thread, else the argument; null
// with a Python error. Precondition: register_operators() has returned true.
Ref accuracy_of_thread(PyObject* otherwise);

// Returns true if a kernel of these calls the kernel in Python that calls this first; it then keeps its
// exception, of which torch's C functions would keep nothing, and returns any tensor.
bool take_call();
void keep_error(PyObject* error);

}  // namespace kintsugi_python
