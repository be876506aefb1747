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
  std::string engine;                // "auto": the quickest one that is available
  bool forces_offload = false;       // every product that a GPU can multiply is to be offloaded
  std::int64_t workspace_limit = 0;  // bytes; 0: not set
  bool explain = false;              // true: a line on stderr for each distinct problem
  std::string report;                // file of the report at exit, "-" for a table on stderr; "": none
  bool strict = false;    // true: a malformed setting, or a forced emulation that fails, ends the program
  std::string malformed;  // why a setting was not accepted, so that every call is forwarded; "": all were

  bool is_malformed() const { return !malformed.empty(); }
  bool records_calls() const { return explain || !report.empty(); }
  // True if the user asks for more than the default: then a call without a plan does not keep the settings.
  bool asks_for_products() const {
    return policy == Policy::emulate || policy == Policy::force || !accuracy.empty() || !scheme.empty() ||
           engine != "auto";
  }
};

// Returns the value of an environment variable; "" if it is not set.
std::string variable(const char* name);

// Reads the settings. If a setting is malformed, sets `message` and returns false. Prints a line on stderr
// for each variable of the environment that names no setting and is near the name of one.
bool read_common_settings(CommonSettings& settings, std::string& message);

// Marks the settings as malformed and prints a line about it on stderr.
void refuse(CommonSettings& settings, const std::string& message);

// Tells the user that a call of `symbol` does not keep the settings: one line on stderr for the first such
// call of the program, which it ends with status 2 if KINTSUGI_STRICT=1. Call it before anything is
// computed, without locks.
void note_not_kept(const CommonSettings& settings, const char* symbol, const std::string& why);

const char* policy_name(Policy policy);

}  // namespace kintsugi::drop_in
