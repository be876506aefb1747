// Arguments of a call, checked in the order of the reference BLAS.
#pragma once

#include "call.hpp"

namespace kintsugi::blas {

// The first wrong argument of a call.
struct BadArgument {
  // Number of the argument in the Fortran routine. For a CBLAS call it is the number in the Fortran call that
  // the reference CBLAS would make for it. For an enumerator of CBLAS it is the number in the CBLAS routine.
  // 0: all arguments are right.
  int number = 0;
  const char* enumerator = nullptr;  // name of a wrong enumerator of CBLAS, as "Uplo"; else nullptr
  int value = 0;                     // value of the enumerator
};

BadArgument first_bad_argument(const Call& call);

// True if one of the call's ops is conjugation without transposition, which only OpenBLAS has.
bool has_conjugate_only_op(const Call& call);

}  // namespace kintsugi::blas
