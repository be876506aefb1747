#include "settings.hpp"

#include <cstdlib>
#include <optional>

#include "common/lock.hpp"

namespace kintsugi::blas {

namespace {

// Reads the sites file; returns false, with a message, if it is malformed or a setting contradicts it.
bool read_sites(Settings& settings, std::string& message) {
  const std::string path = drop_in::variable("KINTSUGI_SITES");
  if (path.empty()) return true;
  if (settings.policy == Policy::force) {
    message =
        "KINTSUGI_POLICY = \"force\" cannot stand beside KINTSUGI_SITES, whose unknown sites are native";
    return false;
  }
  if (!settings.scheme.empty()) {
    message = "KINTSUGI_SCHEME, or the settings file's scheme, = \"" + settings.scheme +
              "\" cannot stand beside KINTSUGI_SITES, which names schemes";
    return false;
  }
  settings.sites = read_sites_file(path, message);
  sites_in_force = settings.sites.has_value();
  return sites_in_force;
}

Settings read_settings() {
  Settings settings;
  std::string message;
  if (!read_common_settings(settings, message) || !read_sites(settings, message)) refuse(settings, message);
  return settings;
}

constinit drop_in::MadeOnce<Settings> settings_once(read_settings);

}  // namespace

const Settings& settings() {
  const Settings& read = settings_once.get();
  if (read.malformed && read.strict) std::exit(2);
  return read;
}

}  // namespace kintsugi::blas
