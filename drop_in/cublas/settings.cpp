#include "settings.hpp"

#include <cstdlib>
#include <string>

#include "common/lock.hpp"

namespace kintsugi::cublas {

namespace {

// Reads the sites file. Refuses its member "outputs", which only the BLAS drop-in supports.
bool read_own_sites(Settings& settings, std::string& message) {
  if (!drop_in::read_sites(settings, settings.sites, message)) return false;
  if (!settings.sites || settings.sites->outputs.empty()) return true;
  message = "KINTSUGI_SITES: outputs = \"" + settings.sites->outputs + "\" is for the BLAS drop-in alone";
  return false;
}

Settings read_settings() {
  Settings settings;
  std::string message;
  if (!read_common_settings(settings, message) || !read_own_sites(settings, message))
    refuse(settings, message);
  return settings;
}

constinit drop_in::MadeOnce<Settings> settings_once(read_settings);

}  // namespace

const Settings& settings() {
  const Settings& read = settings_once.get();
  if (read.is_malformed() && read.strict) std::exit(2);
  return read;
}

}  // namespace kintsugi::cublas
