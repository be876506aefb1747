// Lets the BLAS drop-in multiply in place of a loop nest, where a sites file asks for it.
#pragma once

#include <llvm/IR/GlobalVariable.h>

#include "loop_product.hpp"

namespace kintsugi::pass {

// Inserts before the nest: if the weak symbol kintsugi_site_multiply() is defined and returns true, the nest
// is passed over; else it runs unchanged, and kintsugi_site_loop_end(), if defined, is called after it.
void route(const LoopProduct& product, llvm::GlobalVariable& record, const LoopAnalyses& analyses);

}  // namespace kintsugi::pass
