// alpha and beta of a call.
#pragma once

#include <cstdint>

#include "ref.hpp"

namespace kintsugi_python {

// Writes a Python number to `scalar` as a number of a kintsugi_type, which takes at most 16 bytes. Returns
// false for values that the Python code must convert or refuse: other classes, large integers, complex
// numbers for a real type, and numbers beyond the type's range.
bool read_scalar(PyObject* value, int32_t type, void* scalar);

// True if a scalar of a kintsugi_type is 0.
bool is_zero(const void* scalar, int32_t type);

}  // namespace kintsugi_python
