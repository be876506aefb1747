// Call sites of a module: the calls, and what the table says of each.
#pragma once

#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "gemm_callee.hpp"
#include "tuner/sites/record.hpp"

namespace kintsugi::pass {

struct CallSite {
  llvm::CallBase* call = nullptr;
  GemmCallee callee{};
  sites::SiteRecord record;
};

// Returns the sites of a function in the order of its instructions. Calls of an earlier run of the pass are
// left out.
std::vector<CallSite> sites_of(llvm::Function& function);

// Returns the record of a site without its line: of a call, or of the loop nest with this ordinal.
sites::SiteRecord record_of(const llvm::Function& function, llvm::StringRef callee, std::uint32_t ordinal);

// Marks the call as one that has been found, also for a later run on the same code.
void mark_found(llvm::CallBase& call);

}  // namespace kintsugi::pass
