// Functions that multiply matrices and whose calls are call sites.
#pragma once

#include <llvm/ADT/StringRef.h>

#include <optional>

namespace kintsugi::pass {

// Positions of arguments in a call.
struct GemmCallee {
  unsigned a, b, beta, c;
  unsigned arguments;      // fewest that a call has; Fortran compilers append lengths of strings
  bool beta_is_reference;  // beta is a pointer to the scalar
};

// Nothing for other functions.
std::optional<GemmCallee> gemm_callee(llvm::StringRef symbol);

}  // namespace kintsugi::pass
