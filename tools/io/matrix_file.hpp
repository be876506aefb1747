// Matrix files: .npy and Matrix Market (.mtx). The project has its own code for both formats, since Debian
// has no small C++ library that reports what is wrong with a file.
#pragma once

#include <optional>
#include <string>

#include "io/input_file.hpp"
#include "io/matrix.hpp"

namespace kintsugi::tools {

struct MatrixFile {
  Matrix matrix;
  Type stored = Type::float64;     // the file's own type; Matrix Market's text counts as float64
  std::optional<Rounded> rounded;  // what conversion to `type` changed; nothing for Matrix Market's text
};

// Reads a file and converts it to `type`, if a type is given. Its suffix tells the format. Standard input,
// "-", and files that are not regular, such as the pipes of process substitution, may have any name: their
// first bytes tell.
MatrixFile read_matrix(const std::string& path, std::optional<Type> type);

// Fails unless `path` names standard output, or ends with a known suffix and could be written.
void check_output(const std::string& path);

// Fails if a file with the suffix of `path` cannot store such elements. Matrix Market files with complex or
// double-double elements are not written.
void check_holds(const std::string& path, Type type, bool complex);

void write_matrix(const std::string& path, const Matrix& matrix);

// numpy's .npy files (NEP 1 and numpy.lib.format), versions 1, 2 and 3. Reads float32, float64, complex64 or
// complex128, in any byte order and any array order. An array with one dimension becomes a column. numpy has
// no type for double-double numbers; they are float64 of shape (rows, columns, 2) in C order: hi, then lo.
Matrix read_npy(const std::string& path);
Matrix read_npy(InputFile& file);

// Writes version 1: little-endian elements in the matrix's own order (double-double numbers in C order).
// Replaces `path` only when the complete file is on the disk.
void write_npy(const std::string& path, const Matrix& matrix);

// Matrix Market files (NIST, "The Matrix Market Exchange Formats"): coordinate and array; real, integer and
// pattern; general, symmetric and skew-symmetric; all read into a dense column-major matrix. Each number in
// the text is rounded once, to nearest, to `type`. Entries that a coordinate file repeats are added.
Matrix read_matrix_market(InputFile& file, Type type);

// Writes the format array, real, general. Numbers have 9 or 17 significant digits, which identify one float32
// or float64 even if they are first read as a wider type. Replaces `path` only when the complete file is on
// the disk.
void write_matrix_market(const std::string& path, const Matrix& matrix);

}  // namespace kintsugi::tools
