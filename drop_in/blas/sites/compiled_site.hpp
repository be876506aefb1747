// Call sites that the compiler pass named: a program that it compiled tells the drop-in the site of a call
// before the call, by kintsugi_site_begin() and kintsugi_site_end().
#pragma once

#include <memory>

#include "site.hpp"

namespace kintsugi::blas {

// Stores the record of the call site from which this thread's next call comes.
void announce_compiled_site(const void* record);

// Returns the record stored for this thread's call and forgets it; nullptr if the caller was not compiled
// with the pass.
const void* take_compiled_site();

// Makes a site, without a rule, from a record of the compiler pass; nullptr if `record` is none.
// `sites_mutex` must be held.
std::unique_ptr<Site> new_compiled_site(const void* record);

}  // namespace kintsugi::blas
