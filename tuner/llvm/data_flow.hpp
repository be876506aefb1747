// Finds which call sites of a module read the results of others.
#pragma once

#include <llvm/IR/Function.h>

#include <vector>

#include "sites.hpp"

namespace kintsugi::pass {

struct FunctionSites {
  llvm::Function* function = nullptr;
  std::vector<CallSite> sites;
};

// Adds to every record the sites whose C may be in the same object as the site's A, B, or C that is read, and
// from which the program can come to this one: within a function, or through calls of functions of the
// module, whose arguments, results and members of structs are followed.
void add_inputs(std::vector<FunctionSites>& all);

}  // namespace kintsugi::pass
