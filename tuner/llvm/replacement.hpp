// Replaces calls of BLAS by calls of libkintsugi.
#pragma once

#include <llvm/IR/InstrTypes.h>

#include <string>

#include "sites.hpp"

namespace kintsugi::pass {

// Returns why the call cannot be replaced; "" if it can.
std::string obstacle_to_replacement(const CallSite& site);

// Inserts a call of kintsugi_replace_gemm() with the arguments and the level of the site before the call,
// which runs only if libkintsugi has not computed C. If the level has failed, one line on stderr says so,
// once for each site.
void replace(const CallSite& site, const sites::Level& level);

}  // namespace kintsugi::pass
