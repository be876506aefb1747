// Table of the call sites that the compiler pass left in a program or library.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "record.hpp"

namespace kintsugi::sites {

struct TableSite {
  std::string name;
  bool has_hash = false;      // its name has the hash of the source file's path
  std::uint64_t address = 0;  // address of its record, relative to the file's base address
  SiteRecord record;
};

// The message says why a file has no readable table.
struct TableError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the sites of an ELF file in the order of their records; none where the file has no section
// `kintsugi_sites`. Names of files of one base name that differ in their paths have the paths' hashes.
std::vector<TableSite> read_table(const std::string& path);

}  // namespace kintsugi::sites
