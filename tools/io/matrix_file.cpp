#include "io/matrix_file.hpp"

#include <unistd.h>

#include "io/atomic_file.hpp"
#include "io/input_error.hpp"

namespace kintsugi::tools {

namespace {

// True for .npy files and for standard output, false for .mtx files; fails for other names.
bool is_npy(const std::string& path) {
  if (is_standard_output(path)) return true;
  if (path.ends_with(".npy")) return true;
  if (path.ends_with(".mtx")) return false;
  fail(path, "ends with neither .npy nor .mtx");
}

// True for .npy, false for Matrix Market.
bool holds_npy(const std::string& path, InputFile& input) {
  if (path.ends_with(".npy") || path.ends_with(".mtx")) return path.ends_with(".npy");
  if (!is_standard_input(path) && input.size()) fail(path, "ends with neither .npy nor .mtx");
  if (input.begins_with("\x93NUMPY")) return true;
  if (input.begins_with("%%MatrixMarket")) return false;
  fail(input.path(), "holds no matrix: it begins neither with \\x93NUMPY (.npy) nor with %%MatrixMarket");
}

}  // namespace

MatrixFile read_matrix(const std::string& path, std::optional<Type> type) {
  if (is_standard_input(path) && ::isatty(STDIN_FILENO) != 0)
    fail("-", "standard input is a terminal; give a file or a pipe (./- is a file of that name)");
  InputFile input(path);
  MatrixFile file;
  if (holds_npy(path, input)) {
    file.matrix = read_npy(input);
    file.stored = file.matrix.type();
    if (type) file.rounded = convert(file.matrix, *type);
  } else {
    const bool is_double_double = type == Type::double_double;
    file.matrix = read_matrix_market(input, is_double_double ? Type::float64 : type.value_or(Type::float64));
    if (is_double_double) convert(file.matrix, Type::double_double);
  }
  return file;
}

void check_output(const std::string& path) {
  is_npy(path);  // called only because it fails for names of neither format
  check_writable(path);
  if (is_standard_output(path) && ::isatty(STDOUT_FILENO) != 0)
    fail("-o", "- would write binary data (.npy) to the terminal; give a file or a pipe");
}

void check_holds(const std::string& path, Type type, bool complex) {
  if (!is_npy(path) && (complex || type == Type::double_double))
    fail(path, "would hold {} elements, which are written as .npy alone",
         complex ? "complex" : "double-double");
}

void write_matrix(const std::string& path, const Matrix& matrix) {
  if (is_npy(path)) {
    write_npy(path, matrix);
  } else {
    write_matrix_market(path, matrix);
  }
}

}  // namespace kintsugi::tools
