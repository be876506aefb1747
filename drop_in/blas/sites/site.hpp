// Call sites: the places in the program and its libraries that call a routine of BLAS, by the record of the
// compiler pass, or where the caller was not compiled with it by return address.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "common/sites/place.hpp"
#include "common/sites/rules.hpp"

namespace kintsugi::blas {

// The place in the source, as the compiler pass recorded it.
struct CompiledSource {
  std::string file;  // without folders; "" for an inline function
  std::uint32_t line = 0;
  std::string callee;  // "loop" for loops that the pass proved to be a product

  bool is_loop() const { return callee == "loop"; }
};

// Site of a call. Under the compiler pass its name is "file:function:callee#ordinal", and the offset is the
// record's.
struct Site : drop_in::Place {
  std::optional<CompiledSource> source;
  drop_in::SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name it
  mutable std::atomic<bool> has_failed = false;  // a line has said that its rule cannot be kept
};

// The site of a call that returns to `return_address`, by the compiler pass's record unless that is nullptr;
// nullptr without KINTSUGI_SITES, or without memory for it. Sites live as long as the program.
const Site* site_of(const void* return_address, const void* compiled_site);

}  // namespace kintsugi::blas
