// Call sites: the places in the program and its libraries that call a routine of BLAS, by return address.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "rules.hpp"

namespace kintsugi::blas {

struct Site {
  std::string name;          // "module:function@0xoffset", the same in every run of the same files
  std::string module;        // file name, without folders, of the program or library that calls
  std::string function;      // symbol that covers the call; "" where the file has none
  std::uint64_t offset = 0;  // of the return address from the module's base address
  SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name it
  mutable std::atomic<bool> has_failed = false;  // a line has said that its rule cannot be kept
};

// The site of a call that returns to `return_address`; nullptr without KINTSUGI_SITES, or without memory for
// it. Sites live as long as the program.
const Site* site_of(const void* return_address);

}  // namespace kintsugi::blas
