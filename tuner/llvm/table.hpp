// Writes the records of call sites into the module.
#pragma once

#include <llvm/IR/GlobalVariable.h>

#include <vector>

#include "sites.hpp"

namespace kintsugi::pass {

// Returns the record of a site, in the section `kintsugi_sites`. The linker keeps one record of an inline
// function's site.
llvm::GlobalVariable* make_record(llvm::Module& module, const sites::SiteRecord& site);

// Keeps the records through optimisation and linking.
void retain(llvm::Module& module, const std::vector<llvm::GlobalVariable*>& records);

}  // namespace kintsugi::pass
