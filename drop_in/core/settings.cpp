#include "settings.hpp"

#include <kintsugi/kintsugi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "call.hpp"
#include "intercept.hpp"
#include "lock.hpp"

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

struct LibrarySettings {
  std::map<std::string, std::string> values;  // by name
  // Variables of the environment that name no setting, each with the variable that was probably meant.
  std::vector<std::pair<std::string, std::string>> misspelt_variables;
};

// Returns nothing if the library refuses a setting; kintsugi_last_error() then has the reason.
std::optional<LibrarySettings> library_settings() {
  std::size_t needed = 16384;  // enough for most: measuring the document first takes as long as writing it
  std::string text;
  while (text.size() < needed) {
    text.resize(needed);
    if (kintsugi_describe_settings(nullptr, text.data(), text.size(), &needed) != KINTSUGI_SUCCESS)
      return std::nullopt;
  }
  text.resize(needed - 1);
  const auto document = nlohmann::json::parse(text);
  LibrarySettings settings;
  for (const auto& setting : document.at("settings"))
    settings.values[setting.at("name")] =
        setting.at("value").is_string() ? setting.at("value").get<std::string>() : "";
  for (const auto& variable : document.at("ignored_variables"))
    if (variable.at("nearest").is_string())
      settings.misspelt_variables.emplace_back(variable.at("name"), variable.at("nearest"));
  return settings;
}

// Reads the settings of the library. If one is malformed, sets `message` and returns false.
bool read_library_settings(Settings& settings, std::string& message) {
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
    print_line({"the environment variable ", name, " names no setting; did you mean ", nearest, "?"});
  // The library treats "force" in the environment as "emulate".
  const auto& values = library->values;
  settings.policy = policy == "force" ? Policy::force : policy_of(values.at("policy"));
  settings.accuracy = values.at("accuracy");
  settings.scheme = values.at("scheme");
  settings.engine = values.at("engine");
  settings.forces_offload = values.at("offload") == "force";
  settings.sets_threads = values.at("threads") != "0";
  settings.workspace_limit = bytes_of(values.at("workspace_limit"));
  return true;
}

// Reads a variable that is 0 or 1. If it is malformed, sets `message` and returns false.
bool read_switch(const char* name, bool& is_on, std::string& message) {
  const std::string value = variable(name);
  is_on = value == "1";
  if (value.empty() || value == "0" || value == "1") return true;
  message = std::string(name) + " = \"" + value + "\" is not accepted; accepted: 0, 1";
  return false;
}

// Reads the settings that only drop-ins have. If one is malformed, sets `message` and returns false.
bool read_own_settings(Settings& settings, std::string& message) {
  settings.report = variable("KINTSUGI_REPORT");
  return read_switch("KINTSUGI_EXPLAIN", settings.explain, message) &&
         read_switch("KINTSUGI_VERBOSE", settings.verbose, message) &&
         (!this_drop_in.is_cublas ||
          (read_switch("KINTSUGI_CUBLAS_EMULATION", settings.keeps_vendor_emulation, message) &&
           read_switch("KINTSUGI_VERIFY_SPEED", settings.verifies_speed, message))) &&
         read_dump(variable("KINTSUGI_DUMP"), settings.dump, message);
}

void note_variables_of_cublas() {
  for (const char* name : {"KINTSUGI_CUBLAS_EMULATION", "KINTSUGI_VERIFY_SPEED"})
    if (!this_drop_in.is_cublas && !variable(name).empty())
      print_line({name, " is for calls of cuBLAS; those of BLAS do not change"});
}

// cuBLAS multiplies some calls while speeds are verified, which an accuracy or a policy may not allow.
bool check_speed_setting(const Settings& settings, std::string& message) {
  const bool is_allowed = settings.policy == Policy::automatic && settings.accuracy.empty() &&
                          settings.scheme.empty() && !settings.sites;
  if (!settings.verifies_speed || is_allowed) return true;
  message =
      "KINTSUGI_VERIFY_SPEED = 1 lets cuBLAS multiply some calls, so it needs the policy auto, and no accuracy, "
      "scheme or sites file";
  return false;
}

// Reads the sites file, whose outputs only the BLAS drop-in writes.
bool read_own_sites(Settings& settings, std::string& message) {
  if (!read_sites(settings, settings.sites, message)) return false;
  if (!this_drop_in.is_cublas || !settings.sites || settings.sites->outputs.empty()) return true;
  message = "KINTSUGI_SITES: outputs = \"" + settings.sites->outputs + "\" is for the BLAS drop-in alone";
  return false;
}

const char* consequence(const Settings& settings, const char* otherwise) {
  return settings.strict ? "KINTSUGI_STRICT = 1 ends the program" : otherwise;
}

Settings read_settings() {
  Settings settings;
  std::string message;
  settings.strict = variable("KINTSUGI_STRICT") == "1";
  // The report is read first, so that it says which of the other settings is malformed.
  if (!read_own_settings(settings, message) || !read_library_settings(settings, message) ||
      !read_own_sites(settings, message) || !check_speed_setting(settings, message)) {
    settings.malformed = message;
    settings.policy = Policy::automatic;
    print_line({message, "; ", consequence(settings, "emulation is off")});
  }
  note_variables_of_cublas();
  sites_in_force = settings.sites.has_value();
  return settings;
}

constinit MadeOnce<Settings> settings_once(read_settings);
constinit std::atomic<bool> report_was_requested = false;

}  // namespace

const Settings& settings() {
  const Settings& read = settings_once.get();
  if (read.is_malformed() && read.strict) std::exit(2);
  return read;
}

// numpy multiplies two FP32 vectors when it is imported. A tolerance for FP64 must not write a line there,
// nor end the program under KINTSUGI_STRICT=1.
bool Settings::answers_vectors(kintsugi_type type) const {
  if (is_malformed() || policy == Policy::native || sites) return false;
  if (accuracy == "exact" || accuracy == "reproducible") return true;
  char* end = nullptr;
  const double tolerance = std::strtod(accuracy.c_str(), &end);
  const bool is_number = !accuracy.empty() && *end == '\0';
  return is_number && (tolerance >= 0x1p-24 || !is_single(type));
}

bool wants_report() {
  return !settings().report.empty() || report_was_requested.load(std::memory_order_relaxed);
}

bool records_calls() {
  const Settings& now = settings();
  return now.explain || now.verbose || !now.report.empty() || now.verifies_speed || now.dump ||
         report_was_requested.load(std::memory_order_relaxed);
}

void begin_to_record() {
  report_was_requested = true;
  interception = Interception::all;
}

void print_line(std::initializer_list<std::string_view> parts) noexcept {
  std::string line = "kintsugi: ";
  try {
    for (const std::string_view part : parts) line += part;
    line += '\n';
  } catch (const std::exception&) {  // No memory: the line is cut short.
  }
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void note_not_kept(const char* symbol, const std::string& why) {
  static constinit std::atomic<bool> was_noted = false;
  if (was_noted.load(std::memory_order_relaxed) || was_noted.exchange(true)) return;
  const std::string reason = why.ends_with('.') ? why.substr(0, why.size() - 1) : why;
  print_line({symbol, ": ", reason, "; ",
              consequence(settings(), "further calls that the settings do not suit are not named")});
  if (settings().strict) std::exit(2);
}

void note_failure(const char* symbol, const std::string& why) {
  if (!settings().asks_for_products()) return;
  if (settings().policy != Policy::force) return note_not_kept(symbol, why);
  print_line({symbol, ": policy force, but ", why});
  if (settings().strict) std::exit(2);
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

// ------------------------------------------------------------------ interception

constinit std::atomic<Interception> interception = Interception::unknown;
constinit thread_local int calls_under_way = 0;
constinit thread_local int call_threads = 0;
constinit thread_local const void* announced_site = nullptr;
constinit NativeSites native_sites;

Interception read_interception() {
  const Settings& read = settings();
  const bool forwards_all = read.is_malformed() || (read.policy == Policy::native && !read.sites);
  const Interception found = records_calls() ? Interception::all
                             : forwards_all  ? Interception::none
                             : read.sites    ? Interception::by_site
                                             : Interception::all;
  Interception unknown = Interception::unknown;  // else the program has asked for a report meanwhile
  return interception.compare_exchange_strong(unknown, found) ? found : unknown;
}

}  // namespace kintsugi::drop_in
