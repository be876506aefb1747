// Call sites that the compiler pass has recorded. A program that was compiled with the pass calls
// kintsugi_site_begin() before a call of BLAS and kintsugi_site_end() after it.
#pragma once

#include <memory>

#include "site.hpp"

namespace kintsugi::blas {

// Stores the record of the site from which this thread's next call of BLAS comes.
void announce_compiled_site(const void* record);

namespace in_force {

// Record of the site from which this thread's next call of BLAS comes. The variable is in static TLS, because
// every call of BLAS reads it: a read takes two instructions there.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local const void* site_record;

}  // namespace in_force

// Returns the record that is stored for this thread, and keeps it.
inline const void* announced_site() { return in_force::site_record; }

// Returns the record that is stored for this thread, and removes it. Returns nullptr if the caller was not
// compiled with the pass.
const void* take_compiled_site();

// Makes a site without a rule from a record of the compiler pass. Returns nullptr if `record` is not such a
// record. The caller must hold sites_mutex.
std::unique_ptr<Site> new_compiled_site(const void* record);

}  // namespace kintsugi::blas
