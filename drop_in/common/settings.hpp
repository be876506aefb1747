// Settings that all drop-ins have, from the environment and the settings file.
#pragma once

#include <cstdint>
#include <string>

namespace kintsugi::drop_in {

// `force` is `emulate` without native products.
enum class Policy : std::uint8_t { automatic, emulate, native, force };

struct CommonSettings {
  Policy policy = Policy::automatic;
  std::string accuracy;              // as the library accepts it; "": that of the operands' type
  std::string scheme;                // "": the policy chooses
  std::int64_t workspace_limit = 0;  // bytes; 0: not set
  bool explain = false;              // one line on stderr for each distinct problem
  std::string report;                // file of the report at exit, "-" for a table on stderr; "": none
  bool strict = false;
  bool malformed = false;  // a setting was not accepted: every call is forwarded

  bool records_calls() const { return explain || !report.empty(); }
};

// Value of an environment variable; "" if it is not set.
std::string variable(const char* name);

// Reads the settings; false, with a message that has the value, where one is malformed.
bool read_common_settings(CommonSettings& settings, std::string& message);

// Marks the settings as malformed, with one line on stderr.
void refuse(CommonSettings& settings, const std::string& message);

const char* policy_name(Policy policy);

}  // namespace kintsugi::drop_in
