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
  mutable std::atomic<bool> has_failed = false;  // a line has said that its rule cannot be kept
};

// Return address of the exported function that this thread called last. The call reads it before cuBLAS,
// which may call exported functions too, can change it.
extern thread_local const void* return_address;

// The site of the call of this thread; nullptr without KINTSUGI_SITES, or without memory for it. Sites live
// as long as the program.
const Site* current_site();

// One line on stderr, the first time, for a site whose rule cannot be kept.
void note_failure(const Site& site, const std::string& message);

}  // namespace kintsugi::cublas
