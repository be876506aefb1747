// Call sites that the compiler pass named: a program that it compiled tells the drop-in the site of a call
// before the call, by kintsugi_site_begin() and kintsugi_site_end().
#pragma once

#include <memory>

#include "site.hpp"

namespace kintsugi::blas {

// Notes the record of the site from which this thread's next call comes.
void announce_compiled_site(const void* record);

// The record of the site that this thread is about to call from, which counts for one call; nullptr: the
// caller was not compiled with the pass.
const void* take_compiled_site();

// The site of a record of the compiler pass, without a rule; nullptr where there is no such record.
// `sites_mutex` must be held.
std::unique_ptr<Site> new_compiled_site(const void* record);

}  // namespace kintsugi::blas
