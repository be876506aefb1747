// Settings: one table, five places a value may come from, nearest first.
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

// "KINTSUGI_" and the name in capitals.
std::string environment_variable(const SettingDescription& setting);

// Fails with bad_setting, naming the accepted values, when there is no such setting.
const SettingDescription& find_setting(std::string_view name);

// Fails with bad_setting when the value is malformed. `where` names its source for the message.
void check_setting(const SettingDescription& setting, std::string_view value, std::string_view where);

// Fails with bad_setting for a setting that only the environment may set.
void refuse_environment_only(const SettingDescription& setting, std::string_view where);

// Parsed forms of checked values.
std::int64_t parse_bytes(std::string_view value);
std::int64_t parse_integer(std::string_view value);

// Held while the environment is read or changed by the library, which does both from any thread.
std::unique_lock<std::recursive_mutex> lock_environment();

// Settings that serve the whole program: only the environment may set them.
constexpr bool environment_only(SettingId id) {
  return id == SettingId::strict || id == SettingId::cublas || id == SettingId::cpu_blas ||
         id == SettingId::cpu_blas_kernel || id == SettingId::cpu_int8 || id == SettingId::cpu_int52;
}

// The value of such a setting, read now, else its default; lock_environment() is held by the caller.
std::string environment_only_value(SettingId id);
// Whether the environment has a value for it; lock_environment() is held by the caller.
bool is_in_environment(SettingId id);

// One layer of values; an empty optional is "not set here".
class SettingLayer {
 public:
  // Checks, then stores; an empty optional unsets.
  void set(const SettingDescription& setting, std::optional<std::string> value, std::string_view where);
  // The default, as a value of this layer: what other layers say does not count.
  void set_default(const SettingDescription& setting);
  const std::optional<std::string>& get(SettingId id) const { return values_[static_cast<std::size_t>(id)]; }

 private:
  std::array<std::optional<std::string>, setting_table.size()> values_;
};

// The layer of the environment's KINTSUGI_... variables, read now. Variables of that prefix that name no
// setting are skipped, since build and module systems set such; where KINTSUGI_STRICT is 1 they are
// bad_setting.
SettingLayer environment_settings();

// A variable of the environment that begins with KINTSUGI_ and names no setting.
struct UnknownVariable {
  std::string name;
  std::optional<std::string> nearest;  // the setting's variable that it may be misspelt from
};
std::vector<UnknownVariable> unknown_variables();
// "the environment variable KINTSUGI_SCHEM names no setting (did you mean KINTSUGI_SCHEME?)"
std::string describe(const UnknownVariable& variable);

// The layer of the settings file: $KINTSUGI_CONFIG, else $XDG_CONFIG_HOME/kintsugi/settings, else
// $HOME/.config/kintsugi/settings. Lines "name = value", # begins a comment. Only a file that
// KINTSUGI_CONFIG names has to exist.
SettingLayer file_settings();

struct SettingValue {
  std::string value;
  std::string_view source;  // one of setting_sources
};

// Nearest first.
inline constexpr std::array<std::string_view, 5> setting_sources{"call", "handle", "environment", "file",
                                                                 "default"};

// Whether a value comes from a nearer place than another.
bool nearer(const SettingValue& value, const SettingValue& other);

// The values in force: call before handle before environment before file before default.
class Settings {
 public:
  Settings() = default;
  Settings(const SettingLayer& call, const SettingLayer& handle, const SettingLayer& environment,
           const SettingLayer& file);
  const SettingValue& operator[](SettingId id) const { return values_[static_cast<std::size_t>(id)]; }
  // Back to the default: another setting from a nearer place makes this one void.
  void reset(SettingId id);

 private:
  std::array<SettingValue, setting_table.size()> values_;
};

}  // namespace kintsugi::core
