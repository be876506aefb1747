#include "settings.hpp"

#include <kintsugi/kintsugi.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "documents.hpp"
#include "lock.hpp"

namespace kintsugi::blas {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Policy policy_of(std::string_view name) {
  if (name == "emulate") return Policy::emulate;
  return name == "native" ? Policy::native : Policy::automatic;
}

bool is_policy(std::string_view name) {
  return name.empty() || name == "auto" || name == "emulate" || name == "native" || name == "force";
}

// The library's own settings; false, with the library's message, where one is malformed.
bool read_library_settings(Settings& settings, std::string& message) {
  const std::string policy = variable("KINTSUGI_POLICY");
  if (!is_policy(policy)) {
    message = "KINTSUGI_POLICY = \"" + policy + "\" is not accepted; accepted: auto, emulate, native, force";
    return false;
  }
  const auto values = library_settings();
  if (!values) {
    message = kintsugi_last_error();
    return false;
  }
  // The library takes "force" from the environment as "emulate".
  settings.policy = policy == "force" ? Policy::force : policy_of(values->at("policy"));
  settings.accuracy = values->at("accuracy");
  settings.scheme = values->at("scheme");
  return true;
}

// The settings of drop-ins alone.
bool read_own_settings(Settings& settings, std::string& message) {
  const std::string explain = variable("KINTSUGI_EXPLAIN");
  if (!explain.empty() && explain != "0" && explain != "1") {
    message = "KINTSUGI_EXPLAIN = \"" + explain + "\" is not accepted; accepted: 0, 1";
    return false;
  }
  settings.explain = explain == "1";
  settings.report = variable("KINTSUGI_REPORT");
  return true;
}

// Rules of call sites, and what may not stand beside them.
bool read_sites(Settings& settings, std::string& message) {
  const std::string path = variable("KINTSUGI_SITES");
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
  settings.strict = variable("KINTSUGI_STRICT") == "1";
  settings.malformed = !read_library_settings(settings, message) || !read_own_settings(settings, message) ||
                       !read_sites(settings, message);
  if (settings.malformed) {
    std::fprintf(stderr, "kintsugi: %s; %s\n", message.c_str(),
                 settings.strict ? "KINTSUGI_STRICT = 1 ends the program" : "emulation is off");
  }
  return settings;
}

constinit MadeOnce<Settings> settings_once(read_settings);

}  // namespace

const Settings& settings() {
  const Settings& read = settings_once.get();
  if (read.malformed && read.strict) std::exit(2);
  return read;
}

const char* policy_name(Policy policy) {
  switch (policy) {
    case Policy::automatic: return "auto";
    case Policy::emulate: return "emulate";
    case Policy::native: return "native";
    case Policy::force: return "force";
  }
  return "";
}

}  // namespace kintsugi::blas
