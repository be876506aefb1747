// Call sites: the places in the program and its libraries that call cuBLAS. The record of the compiler pass
// identifies a site; in code that was not compiled with the pass the return address does. If the sites file
// asks for several frames, the return addresses of the callers belong to it too.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "common/sites/place.hpp"
#include "common/sites/rules.hpp"

namespace kintsugi::cublas {

struct Site : drop_in::Place {
  std::vector<drop_in::Place> callers;  // the nearest first; empty unless the sites file asks for frames
  drop_in::SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name the site
  mutable std::atomic<bool> has_failed = false;  // true: note_failure() has printed its line
};

// Stores the return address of the exported function that this thread has called. current_site() must be
// called at the beginning of a call, before the real cuBLAS may call an exported function and change the
// address.
void note_return_address(const void* address);

// Returns the site of this thread's call; nullptr without KINTSUGI_SITES, or if there is no memory for a
// site. Sites live as long as the program.
const Site* current_site();

// Prints one line on stderr for each site whose rule cannot be followed.
void note_failure(const Site& site, const std::string& message);

}  // namespace kintsugi::cublas
