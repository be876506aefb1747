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

// Returns the positions for a gemm function of BLAS or CBLAS; nullopt for any other function.
std::optional<GemmCallee> gemm_callee(llvm::StringRef symbol);

}  // namespace kintsugi::pass
