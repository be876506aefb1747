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

}  // namespace

MatrixFile read_matrix(const std::string& path, std::optional<Type> type) {
  if (path == "-") fail("-", "standard input is not read; give a file (./- is one of that name)");
  MatrixFile file;
  if (is_npy(path)) {
    file.matrix = read_npy(path);
    file.stored = file.matrix.type();
    if (type) file.rounded = convert(file.matrix, *type);
  } else {
    const bool is_double_double = type == Type::double_double;
    file.matrix = read_matrix_market(path, is_double_double ? Type::float64 : type.value_or(Type::float64));
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
