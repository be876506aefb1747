// Files of matrices by their suffix: .npy or .mtx.
#pragma once

#include <optional>
#include <string>

#include "io/matrix.hpp"

namespace kintsugi::tools {

struct MatrixFile {
  Matrix matrix;
  Type stored = Type::float64;  // the file's own type; text of Matrix Market counts as float64
  Rounded rounded;              // where it was converted to a narrower type
};

// Reads a file as `type`, else as its own type.
MatrixFile read_matrix(const std::string& path, std::optional<Type> type);

// Fails unless `path` ends with a known suffix and a file of that name could be written.
void check_output(const std::string& path);

// Fails where a file of that suffix holds no such elements: of Matrix Market complex and double-double ones
// are not written.
void check_holds(const std::string& path, Type type, bool complex);

void write_matrix(const std::string& path, const Matrix& matrix);

}  // namespace kintsugi::tools
