// Matrix Market files (NIST, "The Matrix Market Exchange Formats"): coordinate and array; real, integer and
// pattern; general, symmetric and skew-symmetric; all read into a dense matrix.
#pragma once

#include <string>

#include "io/matrix.hpp"

namespace kintsugi::tools {

// Reads a file into a column-major matrix. Each number in the text is rounded once, to nearest, to `type`.
// Entries that a coordinate file repeats are added.
Matrix read_matrix_market(const std::string& path, Type type);

// Writes the format array, real, general. Numbers have 9 or 17 significant digits, which identify one float32
// or float64 even if they are first read as a wider type. Replaces `path` only when the complete file is on
// the disk.
void write_matrix_market(const std::string& path, const Matrix& matrix);

}  // namespace kintsugi::tools
