// Arguments of a call, checked in the order of the reference BLAS.
#pragma once

#include "call.hpp"

namespace kintsugi::blas {

// The first wrong argument of a call.
struct BadArgument {
  // Fortran: the number among the arguments of the routine. CBLAS: the same of the Fortran call that the
  // reference CBLAS would make, which has transposed matrices in place of row-major ones; for enumerators the
  // number among the arguments of the CBLAS routine. 0: all arguments are right.
  int number = 0;
  const char* enumerator = nullptr;  // name of CBLAS's enumerator, "Uplo"; nullptr: another argument
  int value = 0;                     // value of the enumerator
};

BadArgument first_bad_argument(const Call& call);

// True if an op of the call is one that only OpenBLAS has: conjugation without transposition.
bool has_conjugate_only_op(const Call& call);

}  // namespace kintsugi::blas
