// numpy's .npy files (NEP 1 and numpy.lib.format): versions 1, 2 and 3 are read, version 1 is written.
//
// Implemented here, since Debian has no small C++ library for .npy or for Matrix Market that reports what is
// wrong with a file.
#pragma once

#include <string>

#include "io/matrix.hpp"

namespace kintsugi::tools {

// Reads float32 or float64, complex64 or complex128, either byte order, either array order; one dimension is
// read as a column. Double-double numbers, for which numpy has no type, are float64 of shape (rows, columns,
// 2) in C order: hi, then lo.
Matrix read_npy(const std::string& path);

// Writes little-endian, in the matrix's own order (double-double numbers in C order); replaces `path` only
// when all of it is on the disk.
void write_npy(const std::string& path, const Matrix& matrix);

}  // namespace kintsugi::tools
