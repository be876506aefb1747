// Tells the BLAS drop-in, where one is loaded, from which site a call comes.
#pragma once

#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/InstrTypes.h>

namespace kintsugi::pass {

// False for a call that must stay the last instruction before a return (musttail).
bool can_route(const llvm::CallBase& call);

// Calls kintsugi_site_begin(record) before the call, and kintsugi_site_end() after it, also where it ends by
// an exception. Both are weak symbols, and are not called where nothing defines them. Returns the call, in
// whose place may be an invoke.
llvm::CallBase& route(llvm::CallBase& call, llvm::GlobalVariable& record);

}  // namespace kintsugi::pass
