// The sites file, which says what each call site runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tuner/sites/level.hpp"

namespace kintsugi::drop_in {

struct Settings;

using SiteRule = sites::Level;

struct SitesFile {
  std::map<std::string, SiteRule> rules;  // key: the site's name
  std::string outputs;                    // folder for the last C of each site; "": none is written
  std::size_t frames = 1;                 // frames of the call stack in a site's name
  std::int64_t error_samples = 0;         // calls of each site whose error is measured; 0: none

  // Returns the rule for a site: that of the longest name in the file that the site's name begins with, by
  // whole frames. Returns nullptr if there is no rule.
  const SiteRule* rule_for(std::string site) const;
};

// Reads the file that KINTSUGI_SITES names into `sites`; does nothing if KINTSUGI_SITES is not set. If the
// file cannot be read, is no sites file, or contradicts a setting, sets `message` and returns false.
bool read_sites(const Settings& settings, std::optional<SitesFile>& sites, std::string& message);

}  // namespace kintsugi::drop_in
