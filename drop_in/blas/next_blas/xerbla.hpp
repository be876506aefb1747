// Reports a wrong argument.
#pragma once

#include "blas/check.hpp"

namespace kintsugi::blas {

// Calls xerbla_, or cblas_xerbla for a wrong enumerator of CBLAS, as the reference BLAS does. A program that
// defines these functions itself is reached. `routine`: the name as xerbla spells it, "DGEMM ".
void report_bad_argument(const char* routine, Convention convention, Layout layout, const BadArgument& bad);

}  // namespace kintsugi::blas
