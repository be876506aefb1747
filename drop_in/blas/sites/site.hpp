// Call sites: the places in the program and its libraries that call a routine of BLAS. The record of the
// compiler pass identifies a site; in code that was not compiled with the pass the return address does.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "common/sites/place.hpp"
#include "common/sites/rules.hpp"

namespace kintsugi::blas {

// The position of a site in the source, as the compiler pass recorded it.
struct CompiledSource {
  std::string file;  // without folders; "" for an inline function
  std::uint32_t line = 0;
  std::string callee;  // "loop" for a loop nest that the pass proved to be a product

  bool is_loop() const { return callee == "loop"; }
};

// Site of a call. A site with a record of the compiler pass has the name "file:function:callee#ordinal" and
// the offset of the record.
struct Site : drop_in::Place {
  std::optional<CompiledSource> source;  // nullopt: no record of the compiler pass
  drop_in::SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name the site
  mutable std::atomic<bool> has_failed = false;  // true: a failure of the rule has been written to stderr
};

// Returns the site of a call. `compiled_site` (the record of the compiler pass) identifies the site; if it is
// nullptr, `return_address` does. Returns nullptr without KINTSUGI_SITES, or without memory. Sites live as
// long as the program.
const Site* site_of(const void* return_address, const void* compiled_site);

}  // namespace kintsugi::blas
