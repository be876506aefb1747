#include "settings.hpp"

#include <kintsugi/kintsugi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "documents.hpp"

namespace kintsugi::drop_in {

namespace {

Policy policy_of(std::string_view name) {
  if (name == "emulate") return Policy::emulate;
  return name == "native" ? Policy::native : Policy::automatic;
}

bool is_policy(std::string_view name) {
  return name.empty() || name == "auto" || name == "emulate" || name == "native" || name == "force";
}

// Returns the number of bytes in a text that the library has accepted: a number, optionally with K, M or G.
std::int64_t bytes_of(const std::string& text) {
  char* end = nullptr;
  const std::int64_t number = std::strtoll(text.c_str(), &end, 10);
  const int shift = *end == 'K' || *end == 'k'   ? 10
                    : *end == 'M' || *end == 'm' ? 20
                    : *end == 'G' || *end == 'g' ? 30
                                                 : 0;
  return number << shift;
}

// Reads the settings of the library. If one is malformed, sets `message` and returns false.
bool read_library_settings(CommonSettings& settings, std::string& message) {
  const std::string policy = variable("KINTSUGI_POLICY");
  if (!is_policy(policy)) {
    message = "KINTSUGI_POLICY = \"" + policy + "\" is not accepted; accepted: auto, emulate, native, force";
    return false;
  }
  const auto library = library_settings();
  if (!library) {
    message = kintsugi_last_error();
    return false;
  }
  for (const auto& [name, nearest] : library->misspelt_variables)
    std::fprintf(stderr, "kintsugi: the environment variable %s names no setting; did you mean %s?\n",
                 name.c_str(), nearest.c_str());
  // The library treats "force" in the environment as "emulate".
  const auto& values = library->values;
  settings.policy = policy == "force" ? Policy::force : policy_of(values.at("policy"));
  settings.accuracy = values.at("accuracy");
  settings.scheme = values.at("scheme");
  settings.engine = values.at("engine");
  settings.forces_offload = values.at("offload") == "force";
  settings.workspace_limit = bytes_of(values.at("workspace_limit"));
  return true;
}

// Reads the settings that only drop-ins have. If one is malformed, sets `message` and returns false.
bool read_own_settings(CommonSettings& settings, std::string& message) {
  settings.report = variable("KINTSUGI_REPORT");
  const std::string explain = variable("KINTSUGI_EXPLAIN");
  if (!explain.empty() && explain != "0" && explain != "1") {
    message = "KINTSUGI_EXPLAIN = \"" + explain + "\" is not accepted; accepted: 0, 1";
    return false;
  }
  settings.explain = explain == "1";
  return true;
}

}  // namespace

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool read_common_settings(CommonSettings& settings, std::string& message) {
  settings.strict = variable("KINTSUGI_STRICT") == "1";
  // The report is read first, so that it says which of the other settings is malformed.
  return read_own_settings(settings, message) && read_library_settings(settings, message);
}

void refuse(CommonSettings& settings, const std::string& message) {
  settings.malformed = message;
  settings.policy = Policy::automatic;
  std::fprintf(stderr, "kintsugi: %s; %s\n", message.c_str(),
               settings.strict ? "KINTSUGI_STRICT = 1 ends the program" : "emulation is off");
}

void note_not_kept(const CommonSettings& settings, const char* symbol, const std::string& why) {
  static constinit std::atomic<bool> was_noted = false;
  if (was_noted.load(std::memory_order_relaxed) || was_noted.exchange(true)) return;
  const std::string reason = why.ends_with('.') ? why.substr(0, why.size() - 1) : why;
  std::fprintf(stderr, "kintsugi: %s: %s; %s\n", symbol, reason.c_str(),
               settings.strict ? "KINTSUGI_STRICT = 1 ends the program"
                               : "further calls that the settings do not suit are not named");
  if (settings.strict) std::exit(2);
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

}  // namespace kintsugi::drop_in
