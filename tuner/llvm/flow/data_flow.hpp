// Finds which call sites of a module read the results of others.
#pragma once

#include <llvm/IR/Function.h>

#include <vector>

#include "tuner/llvm/sites.hpp"

namespace kintsugi::pass {

struct FunctionSites {
  llvm::Function* function = nullptr;
  std::vector<CallSite> sites;
};

// Adds the inputs of every site to its record. Site S is an input of site T if S may write a matrix that T
// reads (A, B, or C unless beta is 0), and if control can reach T after S. The same holds for elements that
// the program copies or computes from the matrix of S. The analysis follows pointers within a function, and
// through arguments, results and struct members of calls within the module.
void add_inputs(std::vector<FunctionSites>& all);

}  // namespace kintsugi::pass
