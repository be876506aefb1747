// The file that KINTSUGI_REPORT names.
#pragma once

#include <string>

namespace kintsugi::drop_in {

// Writes the file beside its target and renames it, so that a full disk does not destroy the old one; false,
// with errno, if it cannot be written.
bool write_file(const std::string& path, const std::string& contents);

// Writes the report to the file `name`, in which %p stands for the process's number. Prints a line on stderr
// if it cannot be written.
void write_report_file(const std::string& name, const std::string& contents);

// False in a forked child whose report would overwrite its parent's: one without %p in its name.
bool has_own_report_file(const std::string& name);

}  // namespace kintsugi::drop_in
