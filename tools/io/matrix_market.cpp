#include "io/matrix_file.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <utility>

#include "io/atomic_file.hpp"
#include "io/input_error.hpp"
#include "io/input_file.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::string_view banner = "%%MatrixMarket";

enum class Symmetry : std::uint8_t { general, symmetric, skew_symmetric };

// Kind of file, from its first line.
struct Kind {
  bool is_coordinate = false;  // entries have positions; false: an array
  bool is_pattern = false;     // entries have positions alone, and the value 1
  bool is_integer = false;
  Symmetry symmetry = Symmetry::general;
};

std::string_view symmetry_name(Symmetry symmetry) {
  if (symmetry == Symmetry::general) return "general";
  return symmetry == Symmetry::symmetric ? "symmetric" : "skew-symmetric";
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Reads the file line by line, and a line word by word. Messages have the number of the line.
class Lines {
 public:
  Lines(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  // Advances to the next line. Returns false at the end.
  bool next() {
    if (text_.empty()) return false;
    const auto end = text_.find('\n');
    line_ = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view{} : text_.substr(end + 1);
    ++line_number_;
    return true;
  }
  // Advances to the next line that is neither blank nor a comment.
  bool next_data() {
    while (next()) {
      const auto first = line_.find_first_not_of(" \t\r");
      if (first != std::string_view::npos && line_[first] != '%') return true;
    }
    return false;
  }
  // Returns the next word; "" at the end of the line.
  std::string_view word() {
    const auto first = line_.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    const auto length = line_.substr(first).find_first_of(" \t\r");
    const auto result = line_.substr(first, length);
    line_ = length == std::string_view::npos ? std::string_view{} : line_.substr(first + length);
    return result;
  }
  // Reads the next word as an integer; `what` names it in messages.
  std::int64_t integer(std::string_view what) {
    const auto text = word();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty()) fail_in_line("{} is missing", what);
    if (error != std::errc() || end != text.data() + text.size())
      fail_in_line("\"{}\" is not a {}", text, what);
    return value;
  }
  // Fails if the line has another word.
  void expect_end() {
    const auto text = word();
    if (!text.empty()) fail_in_line("\"{}\" is one value too many", text);
  }
  template <class... Values>
  [[noreturn]] void fail_in_line(fmt::format_string<Values...> text, Values&&... values) const {
    fail(path_, "line {}: {}", line_number_, fmt::format(text, std::forward<Values>(values)...));
  }

 private:
  const std::string& path_;
  std::string_view text_;  // the lines after the current one
  std::string_view line_;  // the words of the current line that are not read yet
  std::int64_t line_number_ = 0;
};

// Parses a number with correct rounding. from_chars() does not set the value if the number is beyond T's
// range; strtof and strtod then return the nearest subnormal number or zero. A number that would round to
// infinity is an error.
template <class T>
T parse_value(const Lines& lines, std::string_view text, const Kind& kind) {
  if (text.empty()) lines.fail_in_line("a value is missing");
  const auto digits = text.substr(text.front() == '+' ? 1 : 0);
  T value = 0;
  const char* last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  const bool is_of_field =
      !kind.is_integer || digits.find_first_not_of("0123456789-") == std::string_view::npos;
  if (error == std::errc::invalid_argument || end != last || !is_of_field) {
    lines.fail_in_line("\"{}\" is not {}", text, kind.is_integer ? "an integer" : "a number");
  }
  if (error == std::errc()) return value;
  const std::string copy(digits);
  if constexpr (std::is_same_v<T, float>) {
    value = std::strtof(copy.c_str(), nullptr);
  } else {
    value = std::strtod(copy.c_str(), nullptr);
  }
  if (std::isinf(value)) lines.fail_in_line("{} is beyond the largest {}", text, type_name(type_of<T>));
  return value;
}

Kind read_banner(const std::string& path, Lines& lines) {
  if (!lines.next() || lines.word() != banner)
    fail(path, "is not a Matrix Market file: it does not begin with {}", banner);
  const std::string object = lower(lines.word());
  const std::string form = lower(lines.word());
  const std::string field = lower(lines.word());
  const std::string symmetry = lower(lines.word());
  if (object != "matrix") fail(path, "holds a \"{}\"; a matrix is read", object);
  if (form != "coordinate" && form != "array")
    fail(path, "has format \"{}\"; coordinate and array are read", form);
  if (field != "real" && field != "integer" && field != "pattern") {
    fail(path, "has field {}; real, integer and pattern are read", field);
  }
  Kind kind{.is_coordinate = form == "coordinate",
            .is_pattern = field == "pattern",
            .is_integer = field == "integer"};
  if (kind.is_pattern && !kind.is_coordinate)
    fail(path, "has field pattern in an array; it needs coordinates");
  const auto symmetries = {Symmetry::general, Symmetry::symmetric, Symmetry::skew_symmetric};
  const auto found = std::find_if(symmetries.begin(), symmetries.end(),
                                  [&](Symmetry candidate) { return symmetry == symmetry_name(candidate); });
  if (found == symmetries.end()) {
    fail(path, "has symmetry \"{}\"; general, symmetric and skew-symmetric are read", symmetry);
  }
  kind.symmetry = *found;
  lines.expect_end();
  return kind;
}

struct Sizes {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t entries = 0;  // number of lines that follow
};

// Returns the number of entries that an array file stores: all of them, or the lower triangle with or without
// the diagonal.
std::int64_t stored_entries(const Kind& kind, std::int64_t rows, std::int64_t columns) {
  if (kind.symmetry == Symmetry::general) return rows * columns;
  // Symmetric matrices are square.
  return kind.symmetry == Symmetry::symmetric ? rows * (rows + 1) / 2 : rows * (rows - 1) / 2;
}

Sizes read_sizes(const std::string& path, Lines& lines, const Kind& kind) {
  constexpr std::int64_t max_size = std::int64_t{1} << 31;
  if (!lines.next_data()) fail(path, "ends before the line of its sizes");
  Sizes sizes;
  sizes.rows = lines.integer("number of rows");
  sizes.columns = lines.integer("number of columns");
  if (kind.is_coordinate) sizes.entries = lines.integer("number of entries");
  lines.expect_end();
  if (sizes.rows < 0 || sizes.columns < 0 || sizes.entries < 0 || sizes.rows > max_size ||
      sizes.columns > max_size) {
    lines.fail_in_line("sizes {} x {} with {} entries are out of range", sizes.rows, sizes.columns,
                       sizes.entries);
  }
  if (kind.symmetry != Symmetry::general && sizes.rows != sizes.columns) {
    lines.fail_in_line("a {} matrix cannot be {} x {}", symmetry_name(kind.symmetry), sizes.rows,
                       sizes.columns);
  }
  if (!kind.is_coordinate) sizes.entries = stored_entries(kind, sizes.rows, sizes.columns);
  return sizes;
}

// Sets an entry. In a symmetric matrix, also sets the mirrored entry above the diagonal.
template <class T>
void set_entry(Matrix& matrix, Symmetry symmetry, std::int64_t i, std::int64_t j, T value) {
  T* entries = matrix.data<T>();
  entries[i + j * matrix.rows] = value;
  if (symmetry == Symmetry::general || i == j) return;
  entries[j + i * matrix.rows] = symmetry == Symmetry::symmetric ? value : -value;
}

void check_position(const Lines& lines, const Kind& kind, const Sizes& sizes, std::int64_t i,
                    std::int64_t j) {
  if (i < 1 || i > sizes.rows || j < 1 || j > sizes.columns) {
    lines.fail_in_line("entry ({}, {}) lies outside the {} x {} matrix", i, j, sizes.rows, sizes.columns);
  }
  if (kind.symmetry == Symmetry::symmetric && i < j) {
    lines.fail_in_line("entry ({}, {}) lies above the diagonal; a symmetric file stores the lower triangle",
                       i, j);
  }
  if (kind.symmetry == Symmetry::skew_symmetric && i <= j) {
    lines.fail_in_line(
        "entry ({}, {}) does not lie below the diagonal, all that a skew-symmetric file stores", i, j);
  }
}

template <class T>
void read_coordinate_entry(Lines& lines, const Kind& kind, const Sizes& sizes, Matrix& matrix) {
  const std::int64_t i = lines.integer("row index");
  const std::int64_t j = lines.integer("column index");
  check_position(lines, kind, sizes, i, j);
  const T value = kind.is_pattern ? T{1} : parse_value<T>(lines, lines.word(), kind);
  // A file may repeat an entry; the values of its lines are added.
  const T sum_of_earlier_lines = matrix.data<T>()[i - 1 + (j - 1) * matrix.rows];
  set_entry<T>(matrix, kind.symmetry, i - 1, j - 1, sum_of_earlier_lines + value);
}

// Position of the next value of an array file. Values run down the columns. If only the lower triangle is
// stored, each column begins at the diagonal or below it.
struct ArrayPosition {
  const Kind& kind;
  std::int64_t rows;
  std::int64_t i;
  std::int64_t j = 0;

  ArrayPosition(const Kind& file_kind, std::int64_t matrix_rows)
      : kind(file_kind), rows(matrix_rows), i(first_row(0)) {}

  std::int64_t first_row(std::int64_t column) const {
    if (kind.symmetry == Symmetry::general) return 0;
    return kind.symmetry == Symmetry::symmetric ? column : column + 1;
  }
  void advance() {
    if (++i < rows) return;
    i = first_row(++j);
  }
};

template <class T>
void read_entries(const std::string& path, Lines& lines, const Kind& kind, const Sizes& sizes,
                  Matrix& matrix) {
  ArrayPosition position(kind, sizes.rows);
  for (std::int64_t entry = 0; entry < sizes.entries; ++entry) {
    if (!lines.next_data()) fail(path, "holds {} entries, {} are needed", entry, sizes.entries);
    if (kind.is_coordinate) {
      read_coordinate_entry<T>(lines, kind, sizes, matrix);
    } else {
      const T value = parse_value<T>(lines, lines.word(), kind);
      set_entry<T>(matrix, kind.symmetry, position.i, position.j, value);
      position.advance();
    }
    lines.expect_end();
  }
  if (lines.next_data())
    lines.fail_in_line("more than the {} entries that the sizes announce", sizes.entries);
}

template <class T>
std::string array_text(const Matrix& matrix) {
  constexpr int digits = std::is_same_v<T, float> ? 9 : 17;
  std::string text;
  auto out = std::back_inserter(text);
  for (std::int64_t j = 0; j < matrix.columns; ++j) {
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      const T value = matrix.data<T>()[i * matrix.row_stride() + j * matrix.column_stride()];
      fmt::format_to(out, "{:.{}g}\n", value, digits);
    }
  }
  return text;
}

}  // namespace

Matrix read_matrix_market(InputFile& file, Type type) {
  const std::string& path = file.path();
  const std::string text = file.read_rest();
  Lines lines(path, text);
  const Kind kind = read_banner(path, lines);
  const Sizes sizes = read_sizes(path, lines, kind);
  Matrix matrix = make_matrix(path, sizes.rows, sizes.columns, type, Order::column_major);
  if (type == Type::float32) {
    read_entries<float>(path, lines, kind, sizes, matrix);
  } else {
    read_entries<double>(path, lines, kind, sizes, matrix);
  }
  return matrix;
}

void write_matrix_market(const std::string& path, const Matrix& matrix) {
  const std::string head = fmt::format("{} matrix array real general\n% {} written by kintsugi\n{} {}\n",
                                       banner, type_name(matrix.type()), matrix.rows, matrix.columns);
  const std::string text =
      matrix.type() == Type::float32 ? array_text<float>(matrix) : array_text<double>(matrix);
  AtomicFile file(path);
  file.write(head.data(), head.size());
  file.write(text.data(), text.size());
  file.commit();
}

}  // namespace kintsugi::tools
