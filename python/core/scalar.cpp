#include "scalar.hpp"

#include <kintsugi/kintsugi.h>

#include <cmath>

namespace kintsugi_python {
namespace {

constexpr double max_exact_integer = 9007199254740992.0;  // 2^53: double represents all smaller integers

// Stores a part, rounded to T. Returns false if a finite part becomes infinite.
template <typename T>
bool store(double part, T& stored) {
  stored = static_cast<T>(part);
  return std::isfinite(stored) || !std::isfinite(part);
}

template <typename T>
bool store_parts(double real, double imaginary, bool is_complex, void* scalar) {
  T* const parts = static_cast<T*>(scalar);
  return store(real, parts[0]) && (!is_complex || store(imaginary, parts[1]));
}

template <typename T>
bool parts_are_zero(const void* scalar, bool is_complex) {
  const T* const parts = static_cast<const T*>(scalar);
  return parts[0] == 0 && (!is_complex || parts[1] == 0);
}

bool is_single(int32_t type) { return type == KINTSUGI_F32 || type == KINTSUGI_C32; }
bool is_complex(int32_t type) { return type == KINTSUGI_C32 || type == KINTSUGI_C64; }

bool has_type(PyObject* value, PyTypeObject& type) { return Py_TYPE(value) == &type; }

}  // namespace

bool read_scalar(PyObject* value, int32_t type, void* scalar) {
  double real = 0;
  double imaginary = 0;
  if (has_type(value, PyLong_Type)) {
    real = PyLong_AsDouble(value);
    if (!(std::fabs(real) <= max_exact_integer) || (real == -1 && PyErr_Occurred() != nullptr)) return false;
  } else if (has_type(value, PyFloat_Type)) {
    real = PyFloat_AsDouble(value);
  } else if (has_type(value, PyComplex_Type) && is_complex(type)) {
    real = PyComplex_RealAsDouble(value);
    imaginary = PyComplex_ImagAsDouble(value);
  } else {
    return false;
  }
  return is_single(type) ? store_parts<float>(real, imaginary, is_complex(type), scalar)
                         : store_parts<double>(real, imaginary, is_complex(type), scalar);
}

bool is_zero(const void* scalar, int32_t type) {
  return is_single(type) ? parts_are_zero<float>(scalar, is_complex(type))
                         : parts_are_zero<double>(scalar, is_complex(type));
}

}  // namespace kintsugi_python
