// The part of the pass that finds loop nests.
#pragma once

#include <llvm/IR/PassManager.h>

#include <vector>

namespace kintsugi::pass {

// Makes a record for every nest of the function that is proved to be a product, and routes the nest. A nest
// of three loops that multiplies but is not proved gets a remark with the reason.
std::vector<llvm::GlobalVariable*> add_loop_sites(llvm::Function& function,
                                                  llvm::FunctionAnalysisManager& analyses);

}  // namespace kintsugi::pass
