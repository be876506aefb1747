// Writes the records of call sites into the module.
#pragma once

#include <llvm/IR/GlobalVariable.h>

#include <vector>

#include "sites.hpp"

namespace kintsugi::pass {

// Adds the record of a site to the section `kintsugi_sites`. The site of an inline function has a record in
// every source file that uses the function; the linker keeps one.
llvm::GlobalVariable* make_record(llvm::Module& module, const sites::SiteRecord& site);

// Protects the records from removal by the optimiser and the linker.
void retain(llvm::Module& module, const std::vector<llvm::GlobalVariable*>& records);

}  // namespace kintsugi::pass
