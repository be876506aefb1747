// Functions that all commands use: the library's documents as JSON, tables, progress, errors.
#pragma once

#include <fmt/format.h>
#include <kintsugi/kintsugi.h>

#include <algorithm>
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

// A status other than success, with the library's message. Internal errors and device errors are unexpected;
// the user can correct the cause of every other status.
class LibraryError : public std::runtime_error {
 public:
  LibraryError(const std::string& subject, kintsugi_status status);
  kintsugi_status status() const { return status_; }
  bool is_unexpected() const { return status_ == KINTSUGI_INTERNAL || status_ == KINTSUGI_DEVICE_ERROR; }

 private:
  kintsugi_status status_;
};

// A bad result, such as an exceeded bound, that the command was run to find. The exit status is 1.
class Finding : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws LibraryError unless the status is success.
void require(const std::string& subject, kintsugi_status status);

// Unsets environment variables, and sets them again in the destructor. The program must have only one thread
// of its own meanwhile.
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

// Reads the JSON text of a function with the arguments of kintsugi_plan_describe(). `subject`: subject of
// error messages.
Json read_description(const std::string& subject,
                      const std::function<kintsugi_status(char*, std::size_t, std::size_t*)>& describe);
Json describe_schemes();
Json describe_engines();
Json describe_settings(kintsugi_handle handle);

// The library's table of settings, read once at the start. It has the defaults if the environment or the
// settings file is malformed.
struct SettingsTable {
  Json settings;          // array of the document
  std::string malformed;  // the library's message; "" if nothing is malformed
};
const SettingsTable& settings_table();

// Fails if the environment or the settings file is malformed.
void require_settings();

// Returns the flag of `kintsugi gemm` that sets a setting.
std::string flag_of(const Json& setting);

// ------------------------------------------------------------------ documents

// Returns {"format": "kintsugi.<name>", "format_version", "version", "commit", "machine"}.
Json document(const std::string& name, int format_version = 1);
std::string commit();
void print(const Json& document);
// Returns the text of a document with rows. The head has one member per line, and each row is one line.
std::string results_text(const Json& document);

// Returns the JSON value of a text or a stream. If the input is malformed, returns a discarded value and
// throws no exception.
template <class Input>
Json parse_or_discard(Input&& input) {
  constexpr bool throws = false;
  return Json::parse(std::forward<Input>(input), nullptr, throws);
}

// These functions return a number for JSON. JSON has no infinities and no NaN; they become "inf", "-inf" and
// "nan".
Json number(double value);
Json number_or_null(const std::optional<double>& value);
// Returns the value that number() wrote.
double read_number(const Json& number);

// ------------------------------------------------------------------- lists

template <class T>
bool contains(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}
template <class T>
void add_once(std::vector<T>& list, const T& value) {
  if (!contains(list, value)) list.push_back(value);
}

// ------------------------------------------------------------------- text

// Returns a member of a JSON object as text for a table. It is "" for null and for a missing member, and
// "yes" or "no" for booleans.
std::string cell(const Json& object, const std::string& key);

// ------------------------------------------------------------ command lines

// Parses `text` as a number. Fails, with the flag in the message, if it is anything else.
double parse_number(const std::string& flag, const std::string& text);
// Returns the word, quoted if it has characters that are special in a shell.
std::string quoted(const std::string& word);

std::uint64_t parse_seed(const std::string& flag, const std::string& text);

}  // namespace kintsugi::tools
