// The sites file: what runs at each call site.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/settings.hpp"

namespace kintsugi::drop_in {

// Options of the calls of a site; an option that is "" is not set by the rule.
struct SiteRule {
  std::string scheme;
  std::string accuracy;
  std::string policy;

  // True if the library behind the drop-in multiplies: the rule says so, or it says nothing.
  bool is_native() const {
    return policy == "native" || scheme == "native" || (scheme.empty() && accuracy.empty() && policy.empty());
  }
};

struct SitesFile {
  std::map<std::string, SiteRule> rules;  // key: the site's name
  std::string outputs;                    // folder for the last C of each site; "": not written
};

// Reads the file that KINTSUGI_SITES names, if it names one, into `sites`. Returns false, with a message that
// has the value, if the file cannot be read, is no sites file, or contradicts a setting.
bool read_sites(const CommonSettings& settings, std::optional<SitesFile>& sites, std::string& message);

}  // namespace kintsugi::drop_in
