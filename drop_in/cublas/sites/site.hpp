// Call sites: the places in the program and its libraries that call cuBLAS, by return address.
#pragma once

#include <atomic>
#include <string>

#include "common/sites/place.hpp"
#include "common/sites/rules.hpp"

namespace kintsugi::cublas {

struct Site : drop_in::Place {
  drop_in::SiteRule rule;
  bool has_rule = false;                         // false: the sites file does not name it
  mutable std::atomic<bool> has_failed = false;  // true: note_failure() has printed its line
};

// Return address of the exported function that this thread called last. current_site() reads it at the
// beginning of a call: later cuBLAS, which may call exported functions too, can have changed it.
extern thread_local const void* return_address;

// Returns the site of this thread's call; nullptr without KINTSUGI_SITES, or if there is no memory for a
// site. Sites live as long as the program.
const Site* current_site();

// Prints a line on stderr, the first time, for a site whose rule cannot be kept.
void note_failure(const Site& site, const std::string& message);

}  // namespace kintsugi::cublas
