// Arguments of a product that are no operands: its options, alpha and beta.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>

#include "ref.hpp"
#include "state.hpp"

namespace kintsugi_python {

// Order of the options: first the texts accuracy, scheme, engine, policy; then the numbers threads,
// workspace_limit.
inline constexpr int option_count = 6;
inline constexpr int text_count = 4;
inline constexpr int engine_option = 2;  // index of the option `engine`

class Options {
 public:
  Options() = default;
  ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // Sets `values`; a workspace_limit that is a text becomes a setting of the handle until the destructor.
  // Returns false, with a Python error, for an option that is no text or number, or is too large.
  bool read(const State& state, kintsugi_handle handle, PyObject* const given[option_count]);

  kintsugi_options values = KINTSUGI_OPTIONS_INIT;

 private:
  bool read_text(PyObject* value, Ref& kept, const char*& text);
  bool read_limit(const State& state, kintsugi_handle handle, PyObject* value);

  Ref texts_[text_count];                     // the texts that `values` points at
  kintsugi_handle limited_handle_ = nullptr;  // has a workspace_limit of these options
};

// Writes a Python number to `scalar` as a number of a kintsugi_type, which takes at most 16 bytes. Returns
// false for values that the Python code must convert or refuse: other classes, large integers, complex
// numbers for a real type, and numbers beyond the type's range.
bool read_scalar(PyObject* value, int32_t type, void* scalar);

// True if a scalar of a kintsugi_type is 0.
bool is_zero(const void* scalar, int32_t type);

}  // namespace kintsugi_python
