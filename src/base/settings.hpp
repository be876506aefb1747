// Settings: one table, and five sources of a value, nearest first.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::core {

enum class SettingKind : std::uint8_t { text, name, choice, accuracy, bytes, integer };

enum class SettingId : std::uint8_t {
#define KINTSUGI_SETTING(name, kind, default_value, accepted, documentation) name,
#include "base/settings.def"
#undef KINTSUGI_SETTING
};

struct SettingDescription {
  SettingId id;
  std::string_view name;
  SettingKind kind;
  std::string_view default_value;
  std::string_view accepted;
  std::string_view documentation;
};

inline constexpr std::array setting_table{
#define KINTSUGI_SETTING(name, kind, default_value, accepted, documentation) \
  SettingDescription{SettingId::name, #name, SettingKind::kind, default_value, accepted, documentation},
#include "base/settings.def"
#undef KINTSUGI_SETTING
};

const char* setting_kind_name(SettingKind kind);

// "KINTSUGI_" followed by the name in capitals.
std::string environment_variable(const SettingDescription& setting);

// Returns the setting of that name; fails with bad_setting, naming the accepted names, if there is none.
const SettingDescription& find_setting(std::string_view name);

// Fails with bad_setting if the value is malformed. `where` names its source in the message.
void check_setting(const SettingDescription& setting, std::string_view value, std::string_view where);

// Fails with bad_setting if only the environment may set the setting.
void refuse_environment_only(const SettingDescription& setting, std::string_view where);

// Value as a number of bytes, or as an integer. check_setting() must have accepted it.
std::int64_t parse_bytes(std::string_view value);
std::int64_t parse_integer(std::string_view value);

// Locks the environment. Any thread may read or change it, so the library does both under this lock.
std::unique_lock<std::recursive_mutex> lock_environment();

// True for settings that serve the whole program: only the environment may set them.
constexpr bool environment_only(SettingId id) {
  return id == SettingId::strict || id == SettingId::cublas || id == SettingId::nvrtc ||
         id == SettingId::cpu_blas || id == SettingId::cpu_blas_kernel || id == SettingId::cpu_int8 ||
         id == SettingId::cpu_amx || id == SettingId::cpu_int52 || id == SettingId::arch ||
         id == SettingId::sites;
}

// Returns the current value of an environment-only setting, or its default. The caller must hold
// lock_environment().
std::string environment_only_value(SettingId id);
// True if the environment has a value for the setting. The caller must hold lock_environment().
bool is_in_environment(SettingId id);

// Values from one source; an empty optional means "not set here".
class SettingLayer {
 public:
  // Checks the value, then stores it; an empty optional unsets the setting.
  void set(const SettingDescription& setting, std::optional<std::string> value, std::string_view where);
  // Stores the default as this layer's value. Layers of lower precedence then cannot set the value.
  void set_default(const SettingDescription& setting);
  const std::optional<std::string>& get(SettingId id) const { return values_[static_cast<std::size_t>(id)]; }
  // Returns "name=value" and a zero byte for each value that is set. Different layers have different texts.
  std::string text() const;

 private:
  std::array<std::optional<std::string>, setting_table.size()> values_;
};

// Returns the layer of the environment's KINTSUGI_... variables, read now. A variable with that prefix that
// names no setting is skipped, since build and module systems set such variables; if KINTSUGI_STRICT is 1, it
// is bad_setting.
SettingLayer environment_settings();

// Appends the environment's KINTSUGI_... variables to the text: "NAME=value" and a zero byte for each.
// Different states of the environment give different texts. Appending lets a caller keep the text's memory.
void append_environment(std::string& text);
// Returns the layer of the variables in a text of append_environment().
SettingLayer settings_of_environment(std::string_view text);

// A variable of the environment that begins with KINTSUGI_ and names no setting.
struct UnknownVariable {
  std::string name;
  std::optional<std::string> nearest;  // variable of the setting that was probably meant
};
std::vector<UnknownVariable> unknown_variables();
// Message such as "the environment variable KINTSUGI_SCHEM names no setting (did you mean KINTSUGI_SCHEME?)".
std::string describe(const UnknownVariable& variable);

// Returns the folder of the user's settings: $XDG_CONFIG_HOME/kintsugi, else $HOME/.config/kintsugi; empty if
// neither is set.
std::string config_folder();

// Returns the layer of the settings file: $KINTSUGI_CONFIG, else $XDG_CONFIG_HOME/kintsugi/settings, else
// $HOME/.config/kintsugi/settings. Lines are "name = value"; # begins a comment. Only a file that
// KINTSUGI_CONFIG names must exist.
SettingLayer file_settings();

struct SettingValue {
  std::string value;
  std::string_view source;  // one of setting_sources
};

// Sources of values, nearest first.
inline constexpr std::array<std::string_view, 5> setting_sources{"call", "handle", "environment", "file",
                                                                 "default"};

bool is_from_nearer_source(const SettingValue& value, const SettingValue& other);

// The values in effect. The nearest source that sets a value counts: call, handle, environment, file,
// default.
class Settings {
 public:
  Settings() = default;
  Settings(const SettingLayer& call, const SettingLayer& handle, const SettingLayer& environment,
           const SettingLayer& file);
  const SettingValue& operator[](SettingId id) const { return values_[static_cast<std::size_t>(id)]; }
  // Sets a setting back to its default, because another setting from a nearer source excludes it.
  void reset(SettingId id);

 private:
  std::array<SettingValue, setting_table.size()> values_;
};

}  // namespace kintsugi::core
