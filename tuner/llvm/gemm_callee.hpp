// Functions that multiply matrices. Their calls are call sites.
#pragma once

#include <llvm/ADT/StringRef.h>

#include <optional>

namespace kintsugi::pass {

struct GemmCallee {
  unsigned a, b, beta, c;  // positions of the arguments
  unsigned arguments;      // least number of arguments; Fortran compilers append the lengths of strings
  bool beta_is_reference;  // true: the argument beta is a pointer to the scalar
};

// Returns the positions for a gemm function of BLAS or CBLAS; nullopt for any other function.
std::optional<GemmCallee> gemm_callee(llvm::StringRef symbol);

}  // namespace kintsugi::pass
