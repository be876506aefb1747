#include "support.hpp"

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>

#include "kintsugi_commit.hpp"

extern char** environ;

namespace kintsugi::tools {

namespace {

using Cells = std::vector<std::string>;
using ColumnIndices = std::vector<std::size_t>;
using ColumnWidths = std::vector<std::size_t>;  // in characters

constexpr std::size_t gap = 2;  // spaces between columns

// A column with wider cells, which are sentences, is not made narrower than this.
constexpr std::size_t min_prose_width = 24;
constexpr std::size_t min_output_width = 20;  // a narrower terminal is treated as if it had this width

// Returns the width of a text in code points. All printed text has one column for each code point.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t first = 0; first < text.size();) {
    const auto end = std::min(text.find(' ', first), text.size());
    words.push_back(text.substr(first, end - first));
    first = end + 1;
  }
  return words;
}

// Returns lines of at most `width` characters, except for longer words.
std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return {text};
  std::vector<std::string> lines;
  for (const std::string& word : words_of(text)) {
    if (!lines.empty() && width_of(lines.back()) + 1 + width_of(word) <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

// Widths that a column may have.
struct Widths {
  std::size_t natural = 0;  // width of the widest cell
  std::size_t min = 0;      // smallest width to which cells can be wrapped
};

Widths widths_of(const std::vector<Cells>& rows, std::size_t column) {
  Widths widths;
  for (const Cells& row : rows) {
    widths.natural = std::max(widths.natural, width_of(row[column]));
    for (const std::string& word : words_of(row[column])) widths.min = std::max(widths.min, width_of(word));
  }
  if (widths.natural > min_prose_width) widths.min = std::max(widths.min, min_prose_width);
  return widths;
}

std::size_t total_of(const ColumnWidths& widths) {
  return std::accumulate(widths.begin(), widths.end(), gap * (widths.size() - 1));
}

// Returns the widths of a group of columns. Starts with the natural widths, and makes the widest column
// narrower until all columns fit the output's width (0: unlimited) or no column can be narrower.
ColumnWidths fit_widths(const std::vector<Widths>& all, const ColumnIndices& group,
                        std::size_t output_width) {
  ColumnWidths widths;
  for (const std::size_t column : group) widths.push_back(all[column].natural);
  while (output_width > 0 && total_of(widths) > output_width) {
    std::size_t widest = widths.size();  // widest column that can be narrower; widths.size(): there is none
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const bool can_narrow = widths[i] > all[group[i]].min;
      if (can_narrow && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == widths.size()) break;
    --widths[widest];
  }
  return widths;
}

// Returns groups of columns that fit side by side. Every group begins with the table's first column.
std::vector<ColumnIndices> groups_of(const std::vector<Widths>& all, std::size_t output_width) {
  std::vector<ColumnIndices> groups{{0}};
  for (std::size_t column = 1; column < all.size(); ++column) {
    ColumnIndices wider = groups.back();  // the last group plus this column
    wider.push_back(column);
    const bool fits = output_width == 0 || total_of(fit_widths(all, wider, output_width)) <= output_width;
    if (fits || groups.back().size() == 1) {
      groups.back() = wider;
    } else {
      groups.push_back({0, column});
    }
  }
  return groups;
}

// Returns the cells of a row in a group of columns, with as many lines as the longest cell.
std::string row_text(const Cells& row, const ColumnIndices& group, const ColumnWidths& widths,
                     const ColumnIndices& right_aligned) {
  std::vector<std::vector<std::string>> cells;
  std::size_t height = 1;
  for (std::size_t i = 0; i < group.size(); ++i) {
    cells.push_back(lines_of(row[group[i]], widths[i]));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (std::size_t line = 0; line < height; ++line) {
    std::string line_text;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const std::string text_of_cell = line < cells[i].size() ? cells[i][line] : "";
      const std::string padding(widths[i] - std::min(widths[i], width_of(text_of_cell)), ' ');
      const bool is_right_aligned =
          std::find(right_aligned.begin(), right_aligned.end(), group[i]) != right_aligned.end();
      line_text += std::string(i == 0 ? 0 : gap, ' ') +
                   (is_right_aligned ? padding + text_of_cell : text_of_cell + padding);
    }
    text += line_text.substr(0, line_text.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

// Returns the value of the first line "key : value" of a file of /proc; "" if there is none.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != key) continue;
    const auto first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "";
}

// Returns a value of /proc/meminfo, which counts in kB of 1024 bytes, in bytes.
double memory_value(const std::string& key) {
  const std::string text = proc_value("/proc/meminfo", key);
  return text.empty() ? 0 : 1024.0 * std::strtod(text.c_str(), nullptr);
}

int usable_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

Machine read_machine() {
  Machine result;
  struct utsname name {};
  if (uname(&name) == 0) {
    const std::string_view release(name.release);  // version, hyphen, text of the distribution
    result.system = fmt::format("{} {} {}", name.sysname, release.substr(0, release.find('-')), name.machine);
  }
  result.processor = proc_value("/proc/cpuinfo", "model name");
  if (result.processor.empty()) result.processor = "unknown";
  std::istringstream flags(proc_value("/proc/cpuinfo", "flags"));
  for (std::string flag; flags >> flag;) result.flags.push_back(flag);
  result.threads = usable_threads();
  result.memory_bytes = memory_value("MemTotal");
  result.available_bytes = memory_value("MemAvailable");
  return result;
}

Json machine_document() {
  Json flags = Json::array();
  for (const auto& [flag, purpose] : product_flags) {
    if (machine().has(flag)) flags.push_back(flag);
  }
  return {{"system", machine().system},
          {"processor", machine().processor},
          {"processor_flags", flags},
          {"threads", machine().threads},
          {"memory_bytes", static_cast<std::int64_t>(machine().memory_bytes)}};
}

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

std::size_t output_columns() {
  if (const char* given = std::getenv("COLUMNS"); given != nullptr) {
    std::size_t columns = 0;
    const std::string_view text(given);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
    if (error == std::errc() && end == text.data() + text.size() && columns > 0)
      return std::max(columns, min_output_width);
  }
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return 0;
  return std::max<std::size_t>(size.ws_col, min_output_width);
}

std::string Table::text(std::size_t output_width) const {
  std::vector<Widths> all;
  for (std::size_t column = 0; column < rows_.front().size(); ++column)
    all.push_back(widths_of(rows_, column));
  std::string result;
  for (const ColumnIndices& group : groups_of(all, output_width)) {
    const ColumnWidths widths = fit_widths(all, group, output_width);
    if (!result.empty()) result += "\n";
    Cells underline(rows_.front().size());
    for (std::size_t i = 0; i < group.size(); ++i) underline[group[i]] = std::string(widths[i], '-');
    result += row_text(rows_.front(), group, widths, right_aligned_) +
              row_text(underline, group, widths, right_aligned_);
    for (std::size_t i = 1; i < rows_.size(); ++i)
      result += row_text(rows_[i], group, widths, right_aligned_);
  }
  return result;
}

Table make_table(const std::vector<HeadedCells>& rows, std::size_t first_number) {
  std::vector<std::string> heads;
  for (const auto& [head, text] : rows.front()) heads.push_back(head);
  Table table(heads);
  for (std::size_t column = first_number; column < heads.size(); ++column) table.align_right(column);
  for (const HeadedCells& row : rows) {
    Cells cells;
    for (const auto& [head, text] : row) cells.push_back(text);
    table.add(std::move(cells));
  }
  return table;
}

Progress::Progress(std::string what) : what_(std::move(what)), on_terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::int64_t done, std::int64_t total) {
  constexpr auto interval = std::chrono::milliseconds(100);
  constexpr int width = 40;
  const auto now = std::chrono::steady_clock::now();
  if (!on_terminal_ || total <= 0 || (shown_ && now - last_ < interval)) return;
  last_ = now;
  shown_ = true;
  const int filled =
      static_cast<int>(static_cast<double>(width) * static_cast<double>(done) / static_cast<double>(total));
  print_note("\r{} [{:#<{}}{:.<{}}] {} of {}", what_, "", filled, "", width - filled, done, total);
  std::fflush(stderr);
}

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", 1e6 * seconds);
  if (seconds < 1) return fmt::format("{:.2f} ms", 1e3 * seconds);
  return fmt::format("{:.2f} s", seconds);
}

std::string bytes_text(double bytes) {
  constexpr double kibi = 1024;
  if (bytes < kibi) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < kibi * kibi) return fmt::format("{:.1f} KiB", bytes / kibi);
  if (bytes < kibi * kibi * kibi) return fmt::format("{:.1f} MiB", bytes / (kibi * kibi));
  return fmt::format("{:.1f} GiB", bytes / (kibi * kibi * kibi));
}

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string result;
  for (const std::string& line : lines_of(text, width))
    result += (result.empty() ? "" : "\n" + std::string(indent, ' ')) + line;
  return result;
}

std::string wrapped_for_output(const std::string& text, std::size_t width, std::size_t indent) {
  const std::size_t columns = output_columns();
  return wrapped(text, columns > indent ? std::min(width, columns - indent) : width, indent);
}

const Machine& machine() {
  static const Machine result = read_machine();
  return result;
}

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

std::string why_device_is_unusable() {
  const Json engines = describe_engines();
  for (const Json& engine : engines.at("engines")) {
    if (engine.at("name") == "cuda") return engine.at("available") == true ? "" : cell(engine, "reason");
  }
  return "this library has no engine cuda";
}

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

const Json& setting_named(const std::string& name) {
  for (const Json& setting : settings_table().settings)
    if (cell(setting, "name") == name) return setting;
  throw std::logic_error("there is no setting " + name);
}

void refuse_settings(const std::vector<std::string>& names, const std::string& instead) {
  for (const std::string& name : names) {
    const Json& setting = setting_named(name);
    const std::string source = cell(setting, "source"), value = cell(setting, "value");
    if (source == "environment")
      fail(cell(setting, "environment"), "{} has no effect here, since {}; unset it", value, instead);
    if (source == "file")
      fail("settings file",
           "{} = {} has no effect here, since {}; KINTSUGI_CONFIG=/dev/null leaves the file out", name, value,
           instead);
  }
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
