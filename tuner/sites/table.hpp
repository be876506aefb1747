// Table of the call sites in a program or library that was compiled with the pass.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "record.hpp"

namespace kintsugi::sites {

struct TableSite {
  std::string name;
  bool has_hash = false;      // true: the name contains the hash of the source file's path
  std::uint64_t address = 0;  // address of the record, relative to the file's base address
  SiteRecord record;
};

// The message says why a file has no readable table.
struct TableError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the sites of an ELF file in the order of their records; none if the file has no section
// `kintsugi_sites`. If two source files have the same name in different folders, the names of their sites
// contain the paths' hashes.
std::vector<TableSite> read_table(const std::string& path);

}  // namespace kintsugi::sites
