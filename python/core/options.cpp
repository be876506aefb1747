#include "options.hpp"

#include <limits>

namespace kintsugi_python {
namespace {

// Reads a Python number. None leaves `number` unchanged at 0, which means that the option is not set.
template <typename T>
bool read_number(PyObject* value, T& number) {
  if (value == Py_None) return true;
  if (Py_TYPE(value) != &PyLong_Type) return false;
  const long long given = PyLong_AsLongLong(value);
  if (given == -1 && PyErr_Occurred() != nullptr) return false;
  if (given < std::numeric_limits<T>::min() || given > std::numeric_limits<T>::max()) return false;
  number = static_cast<T>(given);
  return true;
}

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

bool Options::read(PyObject* const given[option_count]) {
  const char** const texts[text_count] = {&values.accuracy, &values.scheme, &values.engine, &values.policy};
  for (int i = 0; i < text_count; ++i) {
    if (!read_text(given[i], texts_[i], *texts[i])) return false;
  }
  return read_number(given[4], values.threads) && read_number(given[5], values.workspace_limit);
}

}  // namespace kintsugi_python
