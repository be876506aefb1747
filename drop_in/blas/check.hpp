// Arguments of a call, checked in the order of the reference BLAS, and the report of the first that is wrong.
#pragma once

#include "call.hpp"

namespace kintsugi::blas {

struct BadArgument {
  // Fortran: the number among the arguments of xGEMM, 1 to 13. CBLAS: the same of the Fortran call that the
  // reference CBLAS would make, which has A and B exchanged for row-major matrices; for layout and ops the
  // number among the arguments of cblas_xgemm, 1 to 3.
  int number = 0;
  bool is_cblas_enumerator = false;
};

// number = 0: all are right.
BadArgument first_bad_argument(const GemmCall& call);

// True if only OpenBLAS has the op.
bool has_extension(const GemmCall& call);

// Calls xerbla_, and for enumerators of CBLAS cblas_xerbla, as the reference BLAS does, so that a program's
// own is reached. `routine` is the name in the spelling of xerbla, "DGEMM ".
void report_bad_argument(const char* routine, const GemmCall& call, const BadArgument& bad);

}  // namespace kintsugi::blas
