#include "base/settings.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include "base/status.hpp"
#include "base/text/nearest_name.hpp"
#include "base/threads.hpp"

extern char** environ;

namespace kintsugi::core {

namespace {

constexpr std::string_view prefix = "KINTSUGI_";
constexpr std::string_view config_variable = "KINTSUGI_CONFIG";
// Variables that only the drop-in libraries and the compiler pass read.
constexpr std::array<std::string_view, 8> others_variables{
    "KINTSUGI_CLANG_PROGRAM", "KINTSUGI_CLANG_REPLACE", "KINTSUGI_CUBLAS_EMULATION", "KINTSUGI_DUMP",
    "KINTSUGI_EXPLAIN",       "KINTSUGI_REPORT",        "KINTSUGI_VERBOSE",          "KINTSUGI_VERIFY_SPEED"};

// Only ASCII letters, independent of the program's locale.
constexpr char to_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

constexpr bool is_name_character(char c) {
  return (to_upper(c) >= 'A' && to_upper(c) <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == ':' || c == '=' || c == '+';
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<double> read_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_bytes(std::string_view text) {
  constexpr std::string_view units = "KMG";
  int shift = 0;
  if (!text.empty()) {
    const auto unit = units.find(to_upper(text.back()));
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<int>(unit) + 1);
      text.remove_suffix(1);
    }
  }
  const auto count = read_integer(text);
  if (!count || *count < 0 || *count > (std::numeric_limits<std::int64_t>::max() >> shift))
    return std::nullopt;
  return *count << shift;
}

bool is_listed(std::string_view accepted, std::string_view value) {
  while (!accepted.empty()) {
    const auto comma = accepted.find(", ");
    if (accepted.substr(0, comma) == value) return true;
    accepted = comma == std::string_view::npos ? std::string_view{} : accepted.substr(comma + 2);
  }
  return false;
}

bool is_well_formed(const SettingDescription& setting, std::string_view value) {
  switch (setting.kind) {
    case SettingKind::text: return !value.empty();
    case SettingKind::name:
      return !value.empty() && std::all_of(value.begin(), value.end(), is_name_character);
    case SettingKind::choice: return is_listed(setting.accepted, value);
    case SettingKind::accuracy: {
      if (value == "fp32" || value == "fp64" || value == "dd" || value == "exact" || value == "reproducible")
        return true;
      const auto tolerance = read_double(value);
      return tolerance && *tolerance > 0 && *tolerance < 1;
    }
    case SettingKind::bytes: return read_bytes(value).has_value();
    case SettingKind::integer: {
      const auto count = read_integer(value);
      return count && *count >= 0 && *count <= 4096;
    }
  }
  return false;
}

std::string names_of_settings() {
  std::string names;
  for (const auto& setting : setting_table) {
    if (!names.empty()) names += ", ";
    names += setting.name;
  }
  return names;
}

// True for a variable that the library or a drop-in library reads although it is no setting.
bool is_other_variable(std::string_view variable) {
  return variable == config_variable ||
         std::find(others_variables.begin(), others_variables.end(), variable) != others_variables.end();
}

// Returns the value that this library uses. "force" is a policy of the drop-ins: for the products that they
// pass to this library it means "emulate".
std::string_view value_for_library(const SettingDescription& setting, std::string_view value) {
  return setting.id == SettingId::policy && value == "force" ? "emulate" : value;
}

// Returns the list of the process's variables. A program that names `environ` has a copy of that variable,
// and libc's own `environ` is then never set. A library loaded with RTLD_DEEPBIND would read libc's, so the
// address of the program's is looked up.
char** environment() {
  static char*** const address = [] {
    void* program = ::dlopen(nullptr, RTLD_LAZY);
    void* found = program != nullptr ? ::dlsym(program, "environ") : nullptr;
    if (program != nullptr) ::dlclose(program);
    return found != nullptr ? static_cast<char***>(found) : &environ;
  }();
  return *address;
}

// Calls visit(name, value) for the environment's KINTSUGI_... variables except KINTSUGI_CONFIG and those of
// the drop-in libraries.
template <class Visit>
void for_each_variable(const Visit& visit) {
  const auto lock = lock_environment();
  for (char** element = environment(); element != nullptr && *element != nullptr; ++element) {
    if (**element != prefix.front()) continue;  // a short test first: every call reads all variables
    const std::string_view line(*element);
    const auto equals = line.find('=');
    const auto variable = line.substr(0, equals);
    if (variable.starts_with(prefix) && !is_other_variable(variable))
      visit(variable, line.substr(equals + 1));
  }
}

const SettingDescription* setting_of(std::string_view variable) {
  const auto found = std::find_if(
      setting_table.begin(), setting_table.end(),
      [&](const SettingDescription& setting) { return environment_variable(setting) == variable; });
  return found == setting_table.end() ? nullptr : &*found;
}

// Names are compared without the prefix KINTSUGI_, which all of them share. So variables of CMake and module
// systems, such as KINTSUGI_ROOT, are near no setting.
UnknownVariable with_nearest(std::string_view variable) {
  std::vector<std::string> names{std::string(config_variable.substr(prefix.size()))};
  for (const auto other : others_variables) names.emplace_back(other.substr(prefix.size()));
  for (const auto& setting : setting_table)
    names.push_back(environment_variable(setting).substr(prefix.size()));
  const auto nearest = nearest_name(variable.substr(prefix.size()), names);
  return {std::string(variable), nearest ? std::optional(std::string(prefix) + *nearest) : std::nullopt};
}

std::string environment_text(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string settings_file_path() {
  if (const auto named = environment_text(config_variable.data()); !named.empty()) return named;
  const std::string folder = config_folder();
  return folder.empty() ? folder : folder + "/settings";
}

void read_line(SettingLayer& layer, std::string_view line, const std::string& where) {
  line = trim(line.substr(0, line.find('#')));
  if (line.empty()) return;
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) {
    fail(Status::bad_setting, "{}: \"{}\" is not of the form name = value", where, line);
  }
  const SettingDescription& setting = find_setting(trim(line.substr(0, equals)));
  refuse_environment_only(setting, where);
  layer.set(setting, std::string(trim(line.substr(equals + 1))), where);
}

}  // namespace

std::string config_folder() {
  if (const auto folder = environment_text("XDG_CONFIG_HOME"); !folder.empty()) return folder + "/kintsugi";
  if (const auto home = environment_text("HOME"); !home.empty()) return home + "/.config/kintsugi";
  return {};
}

void refuse_environment_only(const SettingDescription& setting, std::string_view where) {
  if (!environment_only(setting.id)) return;
  fail(Status::bad_setting,
       "{}: the setting {} is one for the whole program: set the environment variable {} instead", where,
       setting.name, environment_variable(setting));
}

const char* setting_kind_name(SettingKind kind) {
  switch (kind) {
    case SettingKind::text: return "text";
    case SettingKind::name: return "name";
    case SettingKind::choice: return "choice";
    case SettingKind::accuracy: return "accuracy";
    case SettingKind::bytes: return "bytes";
    case SettingKind::integer: return "integer";
  }
  return "";
}

std::string environment_variable(const SettingDescription& setting) {
  std::string name(prefix);
  for (const char c : setting.name) name += to_upper(c);
  return name;
}

const SettingDescription& find_setting(std::string_view name) {
  for (const auto& setting : setting_table) {
    if (setting.name == name) return setting;
  }
  fail(Status::bad_setting, "there is no setting \"{}\"{}", name,
       accepted_names(name, "the settings are", names_of_settings()));
}

void check_setting(const SettingDescription& setting, std::string_view value, std::string_view where) {
  if (is_well_formed(setting, value)) return;
  fail(Status::bad_setting, "{}: {} = \"{}\" is not accepted{}", where, setting.name, value,
       accepted_names(value, "accepted:", setting.accepted));
}

std::int64_t parse_bytes(std::string_view value) { return read_bytes(value).value(); }

std::int64_t parse_integer(std::string_view value) { return read_integer(value).value(); }

void SettingLayer::set(const SettingDescription& setting, std::optional<std::string> value,
                       std::string_view where) {
  if (value) check_setting(setting, *value, where);
  values_[static_cast<std::size_t>(setting.id)] = std::move(value);
}

void SettingLayer::set_default(const SettingDescription& setting) {
  values_[static_cast<std::size_t>(setting.id)] = std::string(setting.default_value);
}

std::string SettingLayer::text() const {
  std::string text;
  for (const auto& setting : setting_table) {
    if (const auto& value = get(setting.id))
      text.append(setting.name).append(1, '=').append(*value).append(1, '\0');
  }
  return text;
}

std::unique_lock<std::recursive_mutex> lock_environment() { return lock_shared_state(); }

std::string environment_only_value(SettingId id) {
  const SettingDescription& setting = setting_table[static_cast<std::size_t>(id)];
  const char* value = std::getenv(environment_variable(setting).c_str());
  return value != nullptr && *value != '\0' ? value : std::string(setting.default_value);
}

bool is_in_environment(SettingId id) {
  const char* value = std::getenv(environment_variable(setting_table[static_cast<std::size_t>(id)]).c_str());
  return value != nullptr && *value != '\0';
}

SettingLayer environment_settings() {
  std::string text;
  append_environment(text);
  return settings_of_environment(text);
}

void append_environment(std::string& text) {
  for_each_variable([&](std::string_view variable, std::string_view value) {
    text.append(variable).append(1, '=').append(value).append(1, '\0');
  });
}

SettingLayer settings_of_environment(std::string_view text) {
  SettingLayer layer;
  std::string unknown;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\0'));
    text.remove_prefix(line.size() + 1);
    const std::string_view variable = line.substr(0, line.find('='));
    if (const SettingDescription* setting = setting_of(variable)) {
      layer.set(*setting, std::string(value_for_library(*setting, line.substr(variable.size() + 1))),
                variable);
    } else if (unknown.empty()) {
      unknown = variable;
    }
  }
  if (!unknown.empty() && layer.get(SettingId::strict) == "1")
    fail(Status::bad_setting, "{}; KINTSUGI_STRICT = 1 makes that an error", describe(with_nearest(unknown)));
  return layer;
}

std::vector<UnknownVariable> unknown_variables() {
  std::vector<UnknownVariable> unknown;
  for_each_variable([&](std::string_view variable, std::string_view) {
    if (setting_of(variable) == nullptr) unknown.push_back(with_nearest(variable));
  });
  return unknown;
}

std::string describe(const UnknownVariable& variable) {
  const std::string hint = variable.nearest ? fmt::format(" (did you mean {}?)", *variable.nearest) : "";
  return fmt::format("the environment variable {} names no setting{}", variable.name, hint);
}

SettingLayer file_settings() {
  const auto lock = lock_environment();
  SettingLayer layer;
  const std::string path = settings_file_path();
  if (path.empty()) return layer;
  const char* named = std::getenv(config_variable.data());
  const bool must_exist = named != nullptr && *named != '\0';
  std::ifstream file(path);
  if (!file || file.peek() == std::ifstream::traits_type::eof()) {  // missing, a folder, or empty
    std::error_code error;
    const bool readable = file.is_open() && !std::filesystem::is_directory(path, error);
    if (must_exist && !readable) {
      fail(Status::bad_setting, "{} = \"{}\" cannot be read as a file", config_variable, path);
    }
    return layer;
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    read_line(layer, line, fmt::format("{}:{}", path, number));
  }
  return layer;
}

bool is_from_nearer_source(const SettingValue& value, const SettingValue& other) {
  return std::find(setting_sources.begin(), setting_sources.end(), value.source) <
         std::find(setting_sources.begin(), setting_sources.end(), other.source);
}

void Settings::reset(SettingId id) {
  const SettingDescription& setting = setting_table[static_cast<std::size_t>(id)];
  values_[static_cast<std::size_t>(id)] = {std::string(setting.default_value), setting_sources.back()};
}

Settings::Settings(const SettingLayer& call, const SettingLayer& handle, const SettingLayer& environment,
                   const SettingLayer& file) {
  for (const auto& setting : setting_table) {
    SettingValue& target = values_[static_cast<std::size_t>(setting.id)];
    reset(setting.id);
    const std::pair<const SettingLayer*, std::string_view> layers[] = {{&call, setting_sources[0]},
                                                                       {&handle, setting_sources[1]},
                                                                       {&environment, setting_sources[2]},
                                                                       {&file, setting_sources[3]}};
    for (const auto& [layer, source] : layers) {
      if (const auto& value = layer->get(setting.id)) {
        target = {*value, source};
        break;
      }
    }
  }
}

}  // namespace kintsugi::core
