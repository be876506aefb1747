// The file that KINTSUGI_REPORT names.
#pragma once

#include <string>

namespace kintsugi::drop_in {

// Writes a file. The contents first go to a temporary file, which is then renamed, so that a full disk does
// not destroy the old file. Returns false and sets errno if the file cannot be written.
bool write_file(const std::string& path, const std::string& contents);

// Writes the report to the file `name`, in which %p stands for the process number. Prints a line on stderr if
// the file cannot be written.
void write_report_file(const std::string& name, const std::string& contents);

// False in a forked child if `name` has no %p, since the child would overwrite its parent's report.
bool has_own_report_file(const std::string& name);

}  // namespace kintsugi::drop_in
