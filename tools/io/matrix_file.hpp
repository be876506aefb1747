// Matrix files by their suffix: .npy or .mtx.
#pragma once

#include <optional>
#include <string>

#include "io/matrix.hpp"

namespace kintsugi::tools {

struct MatrixFile {
  Matrix matrix;
  Type stored = Type::float64;  // the file's own type; Matrix Market's text counts as float64
  Rounded rounded;              // what conversion to a narrower type changed
};

// Reads a file and converts it to `type`, if a type is given.
MatrixFile read_matrix(const std::string& path, std::optional<Type> type);

// Fails unless `path` names standard output, or ends with a known suffix and could be written.
void check_output(const std::string& path);

// Fails if a file with the suffix of `path` cannot store such elements. Matrix Market files with complex or
// double-double elements are not written.
void check_holds(const std::string& path, Type type, bool complex);

void write_matrix(const std::string& path, const Matrix& matrix);

}  // namespace kintsugi::tools
