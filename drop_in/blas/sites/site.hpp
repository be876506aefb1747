// Call sites: the places in the program and its libraries that call a routine of BLAS. The record of the
// compiler pass identifies a site; in code that was not compiled with the pass the return address does. If
// the sites file asks for several frames, the return addresses of the callers belong to it too.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "common/sites/compiled_place.hpp"
#include "common/sites/place.hpp"
#include "common/sites/rules.hpp"

namespace kintsugi::blas {

// Site of a call. A site with a record of the compiler pass has the name "file:function:callee#ordinal" and
// the offset of the record. Callers' names follow in the name.
struct Site : drop_in::Place {
  std::vector<drop_in::Place> callers;  // the nearest first; empty unless the sites file asks for frames
  std::optional<drop_in::CompiledSource> source;  // nullopt: no record of the compiler pass
  drop_in::SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name the site
  mutable std::atomic<bool> has_failed = false;  // true: a failure of the rule has been written to stderr
};

// Returns the site of a call. `compiled_site` (the record of the compiler pass) identifies the site; if it is
// nullptr, `return_address` does. Returns nullptr without KINTSUGI_SITES, or without memory. Sites live as
// long as the program.
const Site* site_of(const void* return_address, const void* compiled_site);

}  // namespace kintsugi::blas
