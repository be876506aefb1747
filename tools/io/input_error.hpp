// Errors that the user can correct: one line, `kintsugi: <file or flag>: <what, with the values>`.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace kintsugi::tools {

class InputError : public std::runtime_error {
 public:
  InputError(const std::string& subject, const std::string& what)
      : std::runtime_error(subject + ": " + what) {}
};

// Throws InputError. `subject` is the file or the flag that is wrong.
template <class... Values>
[[noreturn]] void fail(const std::string& subject, fmt::format_string<Values...> text, Values&&... values) {
  throw InputError(subject, fmt::format(text, std::forward<Values>(values)...));
}

}  // namespace kintsugi::tools
