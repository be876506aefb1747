// What the commands share: the library's documents as JSON, tables, progress, the way out.
#pragma once

#include <fmt/format.h>
#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/input_error.hpp"
#include "text.hpp"

namespace kintsugi::tools {

using Json = nlohmann::ordered_json;

// ---------------------------------------------------------------- the library

// A status other than success with the library's own message. An internal error or a device's is
// not the user's to put right.
class LibraryError : public std::runtime_error {
 public:
  LibraryError(const std::string& subject, kintsugi_status status);
  kintsugi_status status() const { return status_; }
  bool is_surprise() const { return status_ == KINTSUGI_INTERNAL || status_ == KINTSUGI_DEVICE_ERROR; }

 private:
  kintsugi_status status_;
};

// What a command was asked to look for and found: not well, exit status 1.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws LibraryError unless the status is success.
void require(const std::string& subject, kintsugi_status status);

// Hides variables of the environment while it lives; the library then sees them unset. The program has
// one thread of its own wherever this is used.
class HiddenVariables {
 public:
  explicit HiddenVariables(const std::vector<std::string>& names);
  ~HiddenVariables();
  HiddenVariables(const HiddenVariables&) = delete;
  HiddenVariables& operator=(const HiddenVariables&) = delete;

 private:
  std::vector<std::pair<std::string, std::string>> saved_;
};

struct HandleDeleter {
  void operator()(kintsugi_handle handle) const { kintsugi_destroy(handle); }
};
using Handle = std::unique_ptr<kintsugi_handle_s, HandleDeleter>;
Handle make_handle();

// A JSON text by the rules of kintsugi_plan_describe, read; `subject` is for the message.
Json read_description(const std::string& subject,
                      const std::function<kintsugi_status(char*, std::size_t, std::size_t*)>& describe);
Json describe_schemes();
Json describe_engines();
Json describe_settings(kintsugi_handle handle);

// The library's table of settings, read once at the start. It is there even where the environment or
// the settings file is malformed; its values are then the defaults.
struct SettingsTable {
  Json settings;          // the array of the document
  std::string malformed;  // the library's message; "" when all is well
};
const SettingsTable& settings_table();

// Fails where the environment or the settings file is malformed.
void require_settings();

// The flag of `kintsugi gemm` that sets a setting.
std::string flag_of(const Json& setting);

// ------------------------------------------------------------------ documents

// {"format": "kintsugi.<name>", "format_version", "version", "commit", "machine"}.
Json document(const std::string& name, int format_version = 1);
std::string commit();
void print(const Json& document);

// JSON has no infinities and no NaN; they are written "inf", "-inf" and "nan".
Json number(double value);
Json number_or_null(const std::optional<double>& value);
// The value of what number() wrote.
double read_number(const Json& number);

// ----------------------------------------------------------------- people

// The word of a JSON value for a table: "" for null or a missing member, yes and no for booleans.
std::string cell(const Json& object, const std::string& key);

// ------------------------------------------------------------ command lines

// A number as the whole of `text`; fails, naming the flag, for anything else.
double parse_number(const std::string& flag, const std::string& text);
// A word as a shell reads it back: between quotes where it has characters that mean something there.
std::string quoted(const std::string& word);

std::uint64_t parse_seed(const std::string& flag, const std::string& text);

}  // namespace kintsugi::tools
