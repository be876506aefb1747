// Settings of the drop-in from the environment and the settings file, read at the program's first call.
#pragma once

#include <optional>

#include "common/settings.hpp"
#include "common/sites/rules.hpp"

namespace kintsugi::blas {

using drop_in::Policy;
using drop_in::policy_name;

struct Settings : drop_in::CommonSettings {
  std::optional<drop_in::SitesFile> sites;  // contents of the file that KINTSUGI_SITES names

  bool forwards_all() const {
    return !records_calls() && (is_malformed() || (policy == Policy::native && !sites));
  }
};

// Returns the settings, which the first call reads. A malformed setting writes a line to stderr, and ends the
// program if KINTSUGI_STRICT=1.
const Settings& settings();

// True if KINTSUGI_SITES names a file; false before the first call of settings().
inline constinit bool sites_in_force = false;
inline bool has_sites() { return sites_in_force; }

}  // namespace kintsugi::blas
