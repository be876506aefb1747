// numpy's .npy files (NEP 1 and numpy.lib.format): versions 1, 2 and 3 are read, version 1 is written.
//
// The project has its own code for .npy and Matrix Market, since Debian has no small C++ library that reports
// what is wrong with a file.
#pragma once

#include <string>

#include "io/matrix.hpp"

namespace kintsugi::tools {

// Reads float32, float64, complex64 or complex128, in any byte order and any array order. An array with one
// dimension becomes a column. numpy has no type for double-double numbers; they are float64 of shape (rows,
// columns, 2) in C order: hi, then lo.
Matrix read_npy(const std::string& path);

// Writes little-endian elements in the matrix's own order (double-double numbers in C order). Replaces `path`
// only when the complete file is on the disk.
void write_npy(const std::string& path, const Matrix& matrix);

}  // namespace kintsugi::tools
