// Settings of the drop-in, read at the program's first call of a hooked name.
#pragma once

#include <optional>

#include "common/settings.hpp"
#include "common/sites/rules.hpp"

namespace kintsugi::cublas {

using drop_in::Policy;
using drop_in::policy_name;

struct Settings : drop_in::CommonSettings {
  std::optional<drop_in::SitesFile> sites;  // contents of the file that KINTSUGI_SITES names
};

// Returns the settings, which the first call reads. A malformed setting prints a line on stderr, and ends the
// program if KINTSUGI_STRICT=1.
const Settings& settings();

}  // namespace kintsugi::cublas
