// Settings that all drop-ins have, from the environment and the settings file.
#pragma once

#include <cstdint>
#include <string>

namespace kintsugi::drop_in {

// Policies of the drop-ins. `force` is `emulate`, except that native products are not accepted.
enum class Policy : std::uint8_t { automatic, emulate, native, force };

struct CommonSettings {
  Policy policy = Policy::automatic;
  std::string accuracy;              // in the library's notation; "": the accuracy of the operands' type
  std::string scheme;                // "": the policy chooses
  std::int64_t workspace_limit = 0;  // bytes; 0: not set
  bool explain = false;              // true: a line on stderr for each distinct problem
  std::string report;                // file of the report at exit, "-" for a table on stderr; "": none
  bool strict = false;     // true: a malformed setting, or a forced emulation that fails, ends the program
  bool malformed = false;  // true: a setting was not accepted, so every call is forwarded

  bool records_calls() const { return explain || !report.empty(); }
};

// Returns the value of an environment variable; "" if it is not set.
std::string variable(const char* name);

// Reads the settings. If a setting is malformed, sets `message` and returns false.
bool read_common_settings(CommonSettings& settings, std::string& message);

// Marks the settings as malformed and prints a line about it on stderr.
void refuse(CommonSettings& settings, const std::string& message);

const char* policy_name(Policy policy);

}  // namespace kintsugi::drop_in
