// Matrix Market files (NIST, "The Matrix Market Exchange Formats"): coordinate and array; real, integer and
// pattern; general, symmetric and skew-symmetric; all read into a dense matrix.
#pragma once

#include <string>

#include "io/matrix.hpp"

namespace kintsugi::tools {

// Reads a file; its text is rounded once, to nearest, to `type`. Entries that a coordinate file repeats are
// added. The order is column-major, as in the file.
Matrix read_matrix_market(const std::string& path, Type type);

// Writes array, real, general, with 9 or 17 significant digits: these identify one float32 or float64, even
// if they are read as the wider type first. Replaces `path` only when all of it is on the disk.
void write_matrix_market(const std::string& path, const Matrix& matrix);

}  // namespace kintsugi::tools
