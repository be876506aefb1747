// KINTSUGI_DUMP: operands and results of products whose sampled error exceeds a limit, as files that
// `kintsugi gemm` reads.
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::drop_in {

struct Call;

struct DumpSetting {
  double limit = 0;  // relative error in the Frobenius norm
  std::string folder;
};

// Reads "LIMIT:FOLDER" and makes the folder if it is not there. "" sets nothing. If the text is malformed, or
// the folder cannot be made, sets `message` and returns false.
bool read_dump(const std::string& text, std::optional<DumpSetting>& dump, std::string& message);

// Returns the contents of a .npy file, version 1. `elements` has no gaps between its columns, or rows if
// `has_rows` is true.
std::string npy_file(kintsugi_type type, std::int64_t rows, std::int64_t columns, bool has_rows,
                     const std::vector<char>& elements);

// A product whose error was measured. Matrices are column-major without gaps, A and B as the call holds them.
struct MeasuredProduct {
  const char* symbol;
  std::string_view program;  // what multiplied; "": the hidden library
  bool is_transposed;        // the call was row-major: its matrices are those of the transposed product
  double error;
  const void *alpha, *beta;                  // in host memory
  std::vector<char> a, b, c, result, exact;  // c: as the call read it; empty if it did not
};

// Writes a folder with the product's matrices and call.json, which has the command that computes it again,
// and a line on stderr. `call` is column-major. Only the first products of a process are written: a line says
// when no further one is.
void write_dump(const DumpSetting& setting, const Call& call, const MeasuredProduct& product);

}  // namespace kintsugi::drop_in
