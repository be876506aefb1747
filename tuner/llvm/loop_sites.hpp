// The part of the pass that finds loop nests.
#pragma once

#include <llvm/IR/PassManager.h>

#include <vector>

namespace kintsugi::pass {

// Gives every nest of a function that is proved to be a product a record, and routes it. Where a nest of
// three loops multiplies and is no product, a remark says why.
std::vector<llvm::GlobalVariable*> add_loop_sites(llvm::Function& function,
                                                  llvm::FunctionAnalysisManager& analyses);

}  // namespace kintsugi::pass
