#include "support.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "kintsugi_commit.hpp"
#include "machine.hpp"

extern char** environ;

namespace kintsugi::tools {

namespace {

// Returns the names of the environment's KINTSUGI_ variables.
std::vector<std::string> setting_variables() {
  std::vector<std::string> names;
  for (char** element = environ; *element != nullptr; ++element) {
    const std::string_view line(*element);
    if (line.starts_with("KINTSUGI_")) names.emplace_back(line.substr(0, line.find('=')));
  }
  return names;
}

// Returns the settings with their defaults. Environment variables are hidden, and the settings file is empty.
Json default_settings() {
  const HiddenVariables hidden(setting_variables());
  ::setenv("KINTSUGI_CONFIG", "/dev/null", 1);
  Json settings = describe_settings(nullptr).at("settings");
  ::unsetenv("KINTSUGI_CONFIG");  // the destructor of `hidden` restores the variable's old value
  return settings;
}

// Returns the library's message without "kintsugi_set: " at its beginning. The program's error line names the
// flag instead.
std::string library_message(kintsugi_status status) {
  const std::string message = kintsugi_last_error();
  constexpr std::string_view call = "kintsugi_set: ";
  if (message.empty()) return kintsugi_status_name(status);
  return message.starts_with(call) ? message.substr(call.size()) : message;
}

// Returns the table of settings. If the settings file is malformed, keeps the message for require_settings(),
// since the library reads the file only once and would not report the error again.
SettingsTable read_settings_table() {
  try {
    return {describe_settings(nullptr).at("settings"), ""};
  } catch (const LibraryError& error) {
    if (error.is_unexpected()) throw;
    const std::string message = kintsugi_last_error();
    return {default_settings(), message};
  }
}

}  // namespace

LibraryError::LibraryError(const std::string& subject, kintsugi_status status)
    : std::runtime_error(subject + ": " + library_message(status)), status_(status) {}

HiddenVariables::HiddenVariables(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) continue;
    saved_.emplace_back(name, value);
    ::unsetenv(name.c_str());
  }
}

HiddenVariables::~HiddenVariables() {
  for (const auto& [name, value] : saved_) ::setenv(name.c_str(), value.c_str(), 1);
}

void require(const std::string& subject, kintsugi_status status) {
  if (status != KINTSUGI_SUCCESS) throw LibraryError(subject, status);
}

Handle make_handle() {
  kintsugi_handle handle = nullptr;
  require("settings", kintsugi_create(&handle));
  return Handle(handle);
}

Json read_description(const std::string& subject,
                      const std::function<kintsugi_status(char*, std::size_t, std::size_t*)>& describe) {
  std::size_t needed = 0;
  require(subject, describe(nullptr, 0, &needed));
  std::string text(needed, '\0');
  require(subject, describe(text.data(), text.size(), &needed));
  text.resize(std::char_traits<char>::length(text.c_str()));
  return Json::parse(text);
}

Json describe_schemes() { return read_description("schemes", kintsugi_describe_schemes); }

Json describe_engines() { return read_description("engines", kintsugi_describe_engines); }

Json describe_settings(kintsugi_handle handle) {
  return read_description("settings", [handle](char* buffer, std::size_t capacity, std::size_t* needed) {
    return kintsugi_describe_settings(handle, buffer, capacity, needed);
  });
}

const SettingsTable& settings_table() {
  static const SettingsTable table = read_settings_table();
  return table;
}

void require_settings() {
  if (!settings_table().malformed.empty()) throw InputError("settings", settings_table().malformed);
}

std::string flag_of(const Json& setting) {
  std::string flag = "--" + cell(setting, "name");
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

Json document(const std::string& name, int format_version) {
  return {{"format", "kintsugi." + name},
          {"format_version", format_version},
          {"version", kintsugi_version()},
          {"commit", commit()},
          {"machine", machine_document()}};
}

std::string commit() { return KINTSUGI_COMMIT; }

// Prints a document. Bytes that are not UTF-8, which file names may have, are replaced, since JSON is UTF-8.
void print(const Json& document) {
  fmt::print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

std::string results_text(const Json& document) {
  Json head = document;
  head.erase("rows");
  std::string result = head.dump(2, ' ', false, Json::error_handler_t::replace);
  result.erase(result.size() - 2);  // "\n}"
  result += ",\n  \"rows\": [";
  const char* separator = "\n    ";
  for (const Json& row : document.at("rows")) {
    result += separator + row.dump();
    separator = ",\n    ";
  }
  return result + "\n  ]\n}\n";
}

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json number_or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

double read_number(const Json& number) {
  if (number.is_number()) return number.get<double>();
  if (number == "inf") return HUGE_VAL;
  if (number == "-inf") return -HUGE_VAL;
  return std::nan("");
}

std::string cell(const Json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (found->is_boolean()) return found->get<bool>() ? "yes" : "no";
  if (found->is_array()) {
    std::string text;
    for (const auto& item : *found)
      text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
    return text;
  }
  return found->dump();
}

double parse_number(const std::string& flag, const std::string& text) {
  double value = 0;
  const std::string_view digits = std::string_view(text).substr(text.starts_with('+') ? 1 : 0);
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (error == std::errc::result_out_of_range) fail(flag, "\"{}\" is out of the range of float64", text);
  if (error != std::errc() || end != last) fail(flag, "\"{}\" is not a number", text);
  return value;
}

std::string quoted(const std::string& word) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=:,./%@";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::uint64_t parse_seed(const std::string& flag, const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(flag, "\"{}\" is not an integer from 0 to 2^64 - 1", text);
  }
  return value;
}

}  // namespace kintsugi::tools
