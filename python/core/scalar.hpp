// alpha and beta of a call.
#pragma once

#include <cstdint>

#include "ref.hpp"

namespace kintsugi_python {

// Writes a number of Python to `scalar`, at most 16 bytes, as a number of a kintsugi_type. Returns false for
// values that Python code has to convert or refuse: other classes, large integers, complex numbers for a real
// type, numbers beyond the type's range.
bool read_scalar(PyObject* value, int32_t type, void* scalar);

// True if a scalar of a kintsugi_type is 0.
bool is_zero(const void* scalar, int32_t type);

}  // namespace kintsugi_python
