// Functions that all commands use: the library's documents as JSON, the machine, tables and other text,
// progress, errors.
#pragma once

#include <fmt/format.h>
#include <kintsugi/kintsugi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/input_error.hpp"

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

// Destroys an object of the library by its function.
template <auto destroy>
struct Deleter {
  template <class Object>
  void operator()(Object* object) const {
    destroy(object);
  }
};

using Handle = std::unique_ptr<kintsugi_handle_s, Deleter<kintsugi_destroy>>;

Handle make_handle();

// Reads the JSON text of a function with the arguments of kintsugi_plan_describe(). `subject`: subject of
// error messages.
Json read_description(const std::string& subject,
                      const std::function<kintsugi_status(char*, std::size_t, std::size_t*)>& describe);

Json describe_schemes();
Json describe_engines();
// Returns why the engine cuda cannot be used; "" if it can.
std::string why_device_is_unusable();
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

// Returns the setting's member of settings_table().
const Json& setting_named(const std::string& name);

// Fails if one of these settings, which a command does not obey, has a value from the environment or the
// settings file. `instead` says what decides in its place.
void refuse_settings(const std::vector<std::string>& names, const std::string& instead);

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

// ------------------------------------------------------------ command lines

// Parses `text` as a number. Fails, with the flag in the message, if it is anything else.
double parse_number(const std::string& flag, const std::string& text);

// Returns the word, quoted if it has characters that are special in a shell.
std::string quoted(const std::string& word);
std::uint64_t parse_seed(const std::string& flag, const std::string& text);

// ------------------------------------------------------------------ machine

// The machine on which the program runs.
struct Machine {
  std::string system;              // "Linux 6.1.0 x86_64"
  std::string processor;           // name of the model
  std::vector<std::string> flags;  // of /proc/cpuinfo
  int threads = 0;                 // usable by this process
  double memory_bytes = 0;
  double available_bytes = 0;

  bool has(const std::string& flag) const { return contains(flags, flag); }
};

// A flag of /proc/cpuinfo that is relevant to matrix products, and its purpose, so that users can judge a
// missing one.
struct ProductFlag {
  const char* name;
  const char* purpose;
};

inline constexpr std::array<ProductFlag, 8> product_flags{{{"avx2", "256-bit vectors"},
                                                           {"fma", "fused multiply-add"},
                                                           {"avx512f", "512-bit vectors"},
                                                           {"avx512ifma", "52-bit integer products"},
                                                           {"avx512_vnni", "8-bit integer dot products"},
                                                           {"avx512_bf16", "bf16 dot products"},
                                                           {"amx_bf16", "bf16 matrix unit"},
                                                           {"amx_int8", "8-bit integer matrix unit"}}};

const Machine& machine();

// ------------------------------------------------------------------- text

// Returns the width of standard output in columns: the variable COLUMNS, or the terminal's width. Returns 0,
// for lines of any length, if standard output is not a terminal.
std::size_t output_columns();

// A table of text. Columns are as wide as their widest cell. If the table is wider than output_columns(),
// cells are wrapped. Columns that still do not fit follow below, beside a copy of the first column.
class Table {
 public:
  explicit Table(std::vector<std::string> heads) : rows_{std::move(heads)} {}
  // Aligns a column of numbers to the right.
  void align_right(std::size_t column) { right_aligned_.push_back(column); }
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const { return text(output_columns()); }
  // Returns the table for an output of `output_width` columns of characters; 0: lines may have any length.
  std::string text(std::size_t output_width) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> right_aligned_;
};

// The cells of a row, with the heads of their columns.
using HeadedCells = std::vector<std::pair<std::string, std::string>>;

// Returns the table of the rows, of which there is at least one. The columns from `first_number` on have
// numbers and are aligned to the right.
Table make_table(const std::vector<HeadedCells>& rows, std::size_t first_number = SIZE_MAX);

// Prints to stderr. A stderr that cannot be written is ignored: nothing is left that could say so, and the
// exit status still tells.
template <class... T>
void print_note(fmt::format_string<T...> format, T&&... values) {
  std::fputs(fmt::format(format, std::forward<T>(values)...).c_str(), stderr);
}

// A progress bar on stderr, if stderr is a terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::int64_t done, std::int64_t total);

 private:
  std::string what_;
  bool on_terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point last_;
};

std::string time_text(double seconds);
std::string bytes_text(double bytes);

// Returns a member of a JSON object as text for a table. It is "" for null and for a missing member, and
// "yes" or "no" for booleans.
std::string cell(const Json& object, const std::string& key);

// Wraps text at spaces into lines of at most `width` characters. All lines after the first begin with
// `indent` spaces.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

// Like wrapped(). Lines, including their indentation, are also limited to output_columns().
std::string wrapped_for_output(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace kintsugi::tools
