// alpha and beta of a call.
#pragma once

#include <cstdint>

#include "ref.hpp"

namespace kintsugi_python {

// A number of Python as one of a kintsugi_type, at most 16 bytes; false for what Python code has to convert
// or refuse: other classes, large integers, complex numbers for a real type, numbers beyond the type's range.
bool read_scalar(PyObject* value, int32_t type, void* scalar);

bool is_zero(const void* scalar, int32_t type);

}  // namespace kintsugi_python
