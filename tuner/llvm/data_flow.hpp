// Finds which call sites of a function read the results of others.
#pragma once

#include <vector>

#include "sites.hpp"

namespace kintsugi::pass {

// Adds to every record the sites of the same function whose C is in the same object as the site's A, B, or C
// that is read, and from which the program can come to this one. The sites are all those of one function.
void add_inputs(std::vector<CallSite>& sites);

}  // namespace kintsugi::pass
