// Call sites of a module: the calls and their records.
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

// Returns the sites of a function in the order of its instructions. Calls that an earlier run of the pass has
// marked are left out.
std::vector<CallSite> sites_of(llvm::Function& function);

// Returns the record, without a line, of the call or loop nest with this ordinal in the function.
sites::SiteRecord record_of(const llvm::Function& function, llvm::StringRef callee, std::uint32_t ordinal);

// Marks the call, so that a later run of the pass leaves it out.
void mark_found(llvm::CallBase& call);

}  // namespace kintsugi::pass
