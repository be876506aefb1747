// Lets the BLAS drop-in multiply in place of a loop nest, where a sites file asks for it.
#pragma once

#include <llvm/IR/GlobalVariable.h>

#include "loop_product.hpp"

namespace kintsugi::pass {

// Inserts a call of kintsugi_site_multiply() before the nest. If it returns true, the nest is skipped.
// Otherwise the nest runs unchanged, and kintsugi_site_loop_end() is called after it. Both functions are weak
// symbols; an undefined one is not called.
void route(const LoopProduct& product, llvm::GlobalVariable& record, const LoopAnalyses& analyses);

}  // namespace kintsugi::pass
