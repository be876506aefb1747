// Call sites: the places in the program and its libraries that call a routine of BLAS, by the record of the
// compiler pass, or where the caller was not compiled with it by return address.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "rules.hpp"

namespace kintsugi::blas {

// The place in the source, as the compiler pass recorded it.
struct CompiledSource {
  std::string file;  // without folders; "" for an inline function
  std::uint32_t line = 0;
  std::string callee;  // "loop" for loops that the pass proved to be a product

  bool is_loop() const { return callee == "loop"; }
};

struct Site {
  std::string name;      // "module:function@0xoffset", or of the compiler pass "file:function:callee#ordinal"
  std::string module;    // file name, without folders, of the program or library that calls
  std::string function;  // symbol that covers the call; "" where the file has none
  std::uint64_t offset = 0;  // of the return address, or of the pass's record, in the module
  std::optional<CompiledSource> source;
  SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name it
  mutable std::atomic<bool> has_failed = false;  // a line has said that its rule cannot be kept
};

// The site of a call that returns to `return_address`, by the compiler pass's record unless that is nullptr;
// nullptr without KINTSUGI_SITES, or without memory for it. Sites live as long as the program.
const Site* site_of(const void* return_address, const void* compiled_site);

std::string without_folders(const std::string& path);

}  // namespace kintsugi::blas
