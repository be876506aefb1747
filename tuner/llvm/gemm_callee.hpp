// Functions that multiply matrices. Their calls are call sites.
#pragma once

#include <llvm/ADT/StringRef.h>

#include <optional>

namespace kintsugi::pass {

enum class Library { blas, cblas, cublas };

struct GemmCallee {
  Library library = Library::blas;
  char type = 's';                   // letter of BLAS: s, d, c or z; not set for cuBLAS
  bool has_64_bit_integers = false;  // by the symbol; not set for cuBLAS
  unsigned a, b, beta, c;            // positions of the arguments
  unsigned arguments;      // least number of arguments; Fortran compilers append the lengths of strings
  bool beta_is_reference;  // true: the argument beta is a pointer to the scalar
};

// Returns the positions for a gemm function of BLAS or CBLAS; nullopt for any other function.
std::optional<GemmCallee> gemm_callee(llvm::StringRef symbol);

}  // namespace kintsugi::pass
