#include "settings.hpp"

#include <cstdlib>
#include <string>

#include "common/lock.hpp"

namespace kintsugi::cublas {

namespace {

Settings read_settings() {
  Settings settings;
  std::string message;
  if (!read_common_settings(settings, message)) refuse(settings, message);
  return settings;
}

constinit drop_in::MadeOnce<Settings> settings_once(read_settings);

}  // namespace

const Settings& settings() {
  const Settings& read = settings_once.get();
  if (read.malformed && read.strict) std::exit(2);
  return read;
}

}  // namespace kintsugi::cublas
