// Routines of levels 1 and 2, which are not emulated: they are counted and forwarded.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace kintsugi::blas {

// Returns the number of calls of each exported name that was called. Calls are counted if there is a report.
std::map<std::string, std::int64_t> uncovered_calls();

// "gemv 12 calls, dot 3: not emulated; ..."; "" if no routine was called.
std::string uncovered_sentence();

// Sets all numbers to 0, in the child of a fork.
void forget_uncovered_calls();

}  // namespace kintsugi::blas
