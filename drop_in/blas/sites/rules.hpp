// The sites file: what runs at each call site.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace kintsugi::blas {

// Options of the calls of a site; those that are "" are not set here.
struct SiteRule {
  std::string scheme;
  std::string accuracy;
  std::string policy;

  // True if the next BLAS multiplies: the rule says so, or it says nothing.
  bool is_native() const {
    return policy == "native" || scheme == "native" || (scheme + accuracy + policy).empty();
  }
};

struct SitesFile {
  std::map<std::string, SiteRule> rules;  // key: the site's name
  std::string outputs;                    // folder for the last C of each site; "": not written
};

// Nothing, with a message that names the file and the member, if the file cannot be read or is no sites file.
std::optional<SitesFile> read_sites_file(const std::string& path, std::string& message);

}  // namespace kintsugi::blas
