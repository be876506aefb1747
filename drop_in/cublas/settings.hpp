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

// A malformed setting is one line on stderr at the first use, and under KINTSUGI_STRICT=1 the end of the
// program.
const Settings& settings();

}  // namespace kintsugi::cublas
