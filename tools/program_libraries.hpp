// BLAS and cuBLAS of a program: what it loads, and which of its calls the drop-ins reach.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// A finding of `kintsugi doctor`. `status`: "ok", "missing", "ignored", "malformed" or "failed"; `advice`:
// what the user can do, or that nothing must be done.
Json finding(const std::string& name, const std::string& status, const std::string& detail,
             const std::string& advice = "");

// Runs the program once, with both drop-ins preloaded, which forward every call, and with the dynamic
// linker's log. The program's standard output goes to standard error. Returns the findings.
Json examine_program(const std::vector<std::string>& words);

}  // namespace kintsugi::tools
