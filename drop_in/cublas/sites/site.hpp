// Call sites: the places in the program and its libraries that call cuBLAS. The return address identifies a
// site.
#pragma once

#include <atomic>
#include <string>

#include "common/sites/place.hpp"
#include "common/sites/rules.hpp"

namespace kintsugi::cublas {

struct Site : drop_in::Place {
  drop_in::SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name the site
  mutable std::atomic<bool> has_failed = false;  // true: note_failure() has printed its line
};

// Return address of the exported function that this thread called last. current_site() must read it at the
// beginning of a call, before the real cuBLAS may call an exported function and change it.
extern thread_local const void* return_address;

// Returns the site of this thread's call; nullptr without KINTSUGI_SITES, or if there is no memory for a
// site. Sites live as long as the program.
const Site* current_site();

// Prints one line on stderr for each site whose rule cannot be followed.
void note_failure(const Site& site, const std::string& message);

}  // namespace kintsugi::cublas
