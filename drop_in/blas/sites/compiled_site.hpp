// Call sites that the compiler pass named: a program that it compiled tells the drop-in the site of a call
// before the call, by kintsugi_site_begin() and kintsugi_site_end().
#pragma once

#include <memory>

#include "site.hpp"

namespace kintsugi::blas {

// Stores the record of the call site from which this thread's next call comes.
void announce_compiled_site(const void* record);

namespace in_force {

// Record of the site from which this thread's next call comes. Eight bytes of static TLS: every call of BLAS
// reads it, which this way takes two instructions.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local const void* site_record;

}  // namespace in_force

// Returns the record stored for this thread's call, as take_compiled_site() does, and keeps it.
inline const void* announced_site() { return in_force::site_record; }

// Returns the record stored for this thread's call and forgets it; nullptr if the caller was not compiled
// with the pass.
const void* take_compiled_site();

// Makes a site, without a rule, from a record of the compiler pass; nullptr if `record` is none.
// `sites_mutex` must be held.
std::unique_ptr<Site> new_compiled_site(const void* record);

}  // namespace kintsugi::blas
