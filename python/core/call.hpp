// Calls of the library: without the interpreter's lock, with failures as Python errors.
#pragma once

#include <kintsugi/kintsugi.h>

#include <string>

#include "state.hpp"

namespace kintsugi_python {

// Calls a function while other threads of Python may run. The function must not use Python objects.
template <typename Call>
auto without_lock(Call call) {
  PyThreadState* const saved = PyEval_SaveThread();
  auto result = call();
  PyEval_RestoreThread(saved);
  return result;
}

// Calls a destroy function without the lock. Keeps the current Python error, since objects may be destroyed
// while there is one.
template <typename Call>
void destroy_without_lock(Call destroy) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  without_lock([&] { return destroy(), true; });
  PyErr_Restore(type, value, trace);
}

// Returns true for success; else false, with a KintsugiError that has the library's message and `cause`,
// which may be empty.
inline bool check(const State& state, kintsugi_status status, Ref cause = Ref()) {
  if (status == KINTSUGI_SUCCESS) return true;
  const Ref error(PyObject_CallFunction(state.error_class.get(), "ss", kintsugi_status_name(status),
                                        kintsugi_last_error()));
  if (error && cause) PyException_SetCause(error.get(), cause.release());
  if (error) PyErr_SetObject(state.error_class.get(), error.get());
  return false;
}

// Returns the text that a function of the library writes, or null with a Python error. write(buffer,
// capacity, needed) is called without the lock.
template <typename Write>
Ref read_text(const State& state, Write write) {
  std::string text;
  size_t needed = 0;
  do {  // repeated if the text has grown since it was measured
    text.resize(needed);
    if (!check(state, without_lock([&] { return write(text.data(), text.size(), &needed); }))) return Ref();
  } while (needed > text.size());
  return Ref(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(needed) - 1, nullptr));
}

}  // namespace kintsugi_python
