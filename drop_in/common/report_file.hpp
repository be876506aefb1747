// The file that KINTSUGI_REPORT names.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace kintsugi::drop_in {

// Writes a file. The contents first go to a temporary file, which is then renamed, so that a full disk does
// not destroy the old file. Returns false and sets errno if the file cannot be written.
bool write_file(const std::string& path, const std::string& contents);

// Returns the document as text. Bytes of an environment variable or a path that are no UTF-8 are replaced.
std::string text_of(const nlohmann::ordered_json& document);

// Writes the report to the file `name`, in which %p stands for the process number. Prints a line on stderr if
// the file cannot be written.
void write_report_file(const std::string& name, const std::string& contents);

// A row of the table of KINTSUGI_REPORT=-.
struct TableRow {
  double seconds = 0;
  std::string text;
};
// Prints the 20 rows with the most time on stderr, and says how many more there are of `things`, such as
// "problems".
void print_rows(std::vector<TableRow> rows, const char* things);

// Prints the line of a process that has no call to report. `library`: "BLAS" or "cuBLAS".
void print_no_product(const char* library, const std::string& why);

// True if the file `name`, in which %p stands for the process number, exists.
bool report_exists(const std::string& name);

// False in a forked child if `name` has no %p, since the child would overwrite its parent's report.
bool has_own_report_file(const std::string& name);

}  // namespace kintsugi::drop_in
