// Call sites: the places in the program and its libraries that call the drop-in. The record of the compiler
// pass identifies a site; in code that was not compiled with the pass the return address does. If the sites
// file asks for several frames, the return addresses of the callers belong to it too.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "place.hpp"
#include "rules.hpp"

namespace kintsugi::drop_in {

// Site of a call. A site with a record of the compiler pass has the name "file:function:callee#ordinal" and
// the offset of the record. Callers' names follow in the name.
struct Site : Place {
  std::vector<Place> callers;            // the nearest first; empty unless the sites file asks for frames
  std::optional<CompiledSource> source;  // nullopt: no record of the compiler pass
  SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name the site
  mutable std::atomic<bool> has_failed = false;  // true: a failure of the rule has been written to stderr
};

// Returns the site of a call. `compiled_site` (the record of the compiler pass) identifies the site; if it is
// nullptr, `return_address` does. Returns nullptr without KINTSUGI_SITES, or without memory. Sites live as
// long as the program.
const Site* site_of(const void* return_address, const void* compiled_site);

// The site whose rule makes a call exact, for measuring another call's error.
const Site* exact_site();

// Writes one line to stderr for each site whose rule cannot be followed, which ends the program with status 2
// if KINTSUGI_STRICT=1.
void note_failure(const Site& site, const std::string& message);

}  // namespace kintsugi::drop_in
