// Options of a call, from the arguments of kintsugi.matmul().
#pragma once

#include <kintsugi/kintsugi.h>

#include "ref.hpp"

namespace kintsugi_python {

// Order of the options: first the texts accuracy, scheme, engine, policy; then the numbers threads,
// workspace_limit.
inline constexpr int option_count = 6;
inline constexpr int text_count = 4;
inline constexpr int engine_option = 2;  // index of the option `engine`

class Options {
 public:
  // Sets `values`. Returns false if the Python code must convert or refuse an option.
  bool read(PyObject* const given[option_count]);

  kintsugi_options values = KINTSUGI_OPTIONS_INIT;

 private:
  bool read_text(PyObject* value, Ref& kept, const char*& text);

  Ref texts_[text_count];  // the texts that `values` points at
};

}  // namespace kintsugi_python
