// Errors inside the library: exceptions with a status, which the C ABI returns as a number.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/text/format_text.hpp"

namespace kintsugi::core {

// Status numbers, equal to those of kintsugi_status; a test compares the two.
enum class Status : std::int32_t {
  success = 0,
  invalid_argument = 1,
  not_supported = 2,
  engine_unavailable = 3,
  out_of_memory = 4,
  workspace_too_small = 5,
  contract_unreachable = 6,
  bad_setting = 7,
  device_error = 8,
  internal = 9,
};

const char* status_name(Status status);

class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

// Throws Error; every message contains the offending values.
template <class... Values>
[[noreturn]] void fail(Status status, fmt::format_string<Values...> text, Values&&... values) {
  throw Error(status, fmt::format(text, std::forward<Values>(values)...));
}

// Message of this thread's last error, for kintsugi_last_error().
void set_last_error(const std::string& message);
const char* last_error();

}  // namespace kintsugi::core
