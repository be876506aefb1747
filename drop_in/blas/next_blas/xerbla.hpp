// The report of a wrong argument.
#pragma once

#include "blas/check.hpp"

namespace kintsugi::blas {

// Calls xerbla_, and for enumerators of CBLAS cblas_xerbla, as the reference BLAS does, so that a program's
// own is reached. `routine` is the name in the spelling of xerbla, "DGEMM ".
void report_bad_argument(const char* routine, Convention convention, Layout layout, const BadArgument& bad);

}  // namespace kintsugi::blas
