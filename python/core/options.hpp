// Options of a call, from what kintsugi.matmul() was given.
#pragma once

#include <kintsugi/kintsugi.h>

#include "ref.hpp"

namespace kintsugi_python {

// accuracy, scheme, engine, policy, threads, workspace_limit
inline constexpr int option_count = 6;
inline constexpr int text_count = 4;
inline constexpr int engine_option = 2;

class Options {
 public:
  // False where Python code has to convert or refuse a value.
  bool read(PyObject* const given[option_count]);

  kintsugi_options values = KINTSUGI_OPTIONS_INIT;

 private:
  bool read_text(PyObject* value, Ref& kept, const char*& text);

  Ref texts_[text_count];  // what the values point at
};

}  // namespace kintsugi_python
