#include "settings.hpp"

#include <cstdlib>

#include "common/lock.hpp"

namespace kintsugi::blas {

namespace {

Settings read_settings() {
  Settings settings;
  std::string message;
  if (!read_common_settings(settings, message) || !drop_in::read_sites(settings, settings.sites, message))
    refuse(settings, message);
  sites_in_force = settings.sites.has_value();
  return settings;
}

constinit drop_in::MadeOnce<Settings> settings_once(read_settings);

}  // namespace

const Settings& settings() {
  const Settings& read = settings_once.get();
  if (read.is_malformed() && read.strict) std::exit(2);
  return read;
}

}  // namespace kintsugi::blas
