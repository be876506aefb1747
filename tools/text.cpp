#include "text.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>

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

}  // namespace kintsugi::tools
