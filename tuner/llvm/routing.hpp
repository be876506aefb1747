// Inserts code that tells the library's drop-in, if it is loaded, from which site a call comes.
#pragma once

#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/InstrTypes.h>

namespace kintsugi::pass {

// False for a musttail call, after which no code can be inserted.
bool can_route(const llvm::CallBase& call);

// Inserts kintsugi_site_begin(record) before the call and kintsugi_site_end() after it, also on the path of
// an exception; for a call of cuBLAS kintsugi_cublas_site_begin and kintsugi_cublas_site_end. The functions
// are weak symbols; an undefined one is not called. Returns the call, or the invoke that has replaced it.
llvm::CallBase& route(llvm::CallBase& call, bool is_of_cublas, llvm::GlobalVariable& record);

}  // namespace kintsugi::pass
