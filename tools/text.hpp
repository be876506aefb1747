// Text output: tables, lines of a given width, numbers with units, progress.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace kintsugi::tools {

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

// Wraps text at spaces into lines of at most `width` characters. All lines after the first begin with
// `indent` spaces.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);
// Like wrapped(). Lines, including their indentation, are also limited to output_columns().
std::string wrapped_for_output(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace kintsugi::tools
