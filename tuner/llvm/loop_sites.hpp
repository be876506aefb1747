// The part of the pass that finds loop nests.
#pragma once

#include <llvm/IR/PassManager.h>

#include <optional>
#include <vector>

#include "levels.hpp"

namespace kintsugi::pass {

// Makes a record for every nest of the function that is proved to be a product, and routes the nest. A nest
// of three loops that multiplies but is not proved gets a remark with the reason. With levels, which are
// compiled into calls of BLAS alone, nests are not routed and stay native.
std::vector<llvm::GlobalVariable*> add_loop_sites(llvm::Function& function,
                                                  llvm::FunctionAnalysisManager& analyses,
                                                  std::optional<Levels>& levels);

}  // namespace kintsugi::pass
