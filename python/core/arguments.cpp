#include "arguments.hpp"

#include <cmath>
#include <limits>

#include "call.hpp"

namespace kintsugi_python {
namespace {

// Reads an integer. None and 0 mean that the option is not set; then `number` stays 0. `accepted`: what the
// value is not, for the message.
template <typename T>
bool read_number(PyObject* value, const char* name, const char* accepted, T& number) {
  constexpr long long least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  if (value == Py_None) return true;
  const Ref integer(PyNumber_Index(value));
  if (!integer) {
    if (PyErr_ExceptionMatches(PyExc_TypeError))
      PyErr_Format(PyExc_TypeError, "%s = %R is %s", name, value, accepted);
    return false;
  }
  int overflow = 0;
  const long long given = PyLong_AsLongLongAndOverflow(integer.get(), &overflow);
  if (given == -1 && PyErr_Occurred() != nullptr) return false;
  const bool is_large = overflow > 0 || given > most;
  if (is_large || overflow < 0 || given < least) {
    PyErr_Format(PyExc_ValueError, "%s = %S is %s than %lld", name, value, is_large ? "more" : "less",
                 is_large ? most : least);
    return false;
  }
  number = static_cast<T>(given);
  return true;
}

constexpr const char* limit_name = "workspace_limit";

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

bool Options::read_text(PyObject* value, Ref& kept, const char*& text) {
  if (value == Py_None) return true;
  const Ref string(PyObject_Str(value));
  if (!string) return false;
  kept = Ref(PyUnicode_AsUTF8String(string.get()));
  if (!kept) return false;
  text = PyBytes_AsString(kept.get());
  return text != nullptr;
}

// The library parses the text, as it does those of environment and settings file: its parser has no function
// of its own in the C ABI.
bool Options::read_limit(const State& state, kintsugi_handle handle, PyObject* value) {
  if (!PyUnicode_Check(value))
    return read_number(value, limit_name, "neither an integer nor a text such as '1G'",
                       values.workspace_limit);
  const Ref text(PyUnicode_AsUTF8String(value));
  if (!text) return false;
  if (!check(state, kintsugi_set(handle, limit_name, PyBytes_AsString(text.get())))) return false;
  limited_handle_ = handle;
  return true;
}

Options::~Options() {
  if (limited_handle_ != nullptr) kintsugi_set(limited_handle_, limit_name, nullptr);
}

bool Options::read(const State& state, kintsugi_handle handle, PyObject* const given[option_count]) {
  const char** const texts[text_count] = {&values.accuracy, &values.scheme, &values.engine, &values.policy};
  for (int i = 0; i < text_count; ++i) {
    if (!read_text(given[i], texts_[i], *texts[i])) return false;
  }
  return read_number(given[4], "threads", "no integer", values.threads) &&
         read_limit(state, handle, given[5]);
}

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
