// Settings of the drop-in from the environment and the settings file, read at the program's first call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sites/rules.hpp"

namespace kintsugi::blas {

// `force` is `emulate` without native products: data that no emulation accepts are multiplied exactly.
enum class Policy : std::uint8_t { automatic, emulate, native, force };

struct Settings {
  Policy policy = Policy::automatic;
  std::string accuracy;            // as the library accepts it; "": that of the operands' type
  std::string scheme;              // of every call without a call site; "": the policy chooses
  bool explain = false;            // one line on stderr for each distinct problem
  std::string report;              // file of the report at exit, "-" for a table on stderr; "": none
  std::optional<SitesFile> sites;  // contents of the file that KINTSUGI_SITES names
  bool strict = false;
  bool malformed = false;  // a setting was not accepted: every call is forwarded

  bool records_calls() const { return explain || !report.empty(); }
  bool forwards_all() const { return malformed || (policy == Policy::native && !records_calls() && !sites); }
};

// A malformed setting is one line on stderr at the first use, and under KINTSUGI_STRICT=1 the end of the
// program.
const Settings& settings();

// True if KINTSUGI_SITES is in force; false before the first call of settings().
inline constinit bool sites_in_force = false;
inline bool has_sites() { return sites_in_force; }

const char* policy_name(Policy policy);

}  // namespace kintsugi::blas
