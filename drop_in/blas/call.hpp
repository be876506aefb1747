// Calls of BLAS: the two conventions, the next BLAS, and the check of arguments.
#pragma once

#include "core/arguments.hpp"
#include "core/symbol.hpp"

namespace kintsugi::blas {

using namespace drop_in;

// Arguments of Fortran: pointers, and letters for enumerators.
struct Fortran {
  static constexpr Op op(const char* letter) { return enumerator_at<Op>(position(*letter, "NTCR")); }
  static constexpr Side side(const char* letter) { return enumerator_at<Side>(position(*letter, "LR")); }
  static constexpr Uplo uplo(const char* letter) { return enumerator_at<Uplo>(position(*letter, "UL")); }
  static constexpr Diag diag(const char* letter) { return enumerator_at<Diag>(position(*letter, "NU")); }
  template <class Int>
  static constexpr std::int64_t number(const Int* value) {
    return *value;
  }
  static constexpr const void* scalar(const void* value) { return value; }

 private:
  static constexpr int position(char letter, const char* capitals) {
    for (int i = 0; capitals[i] != '\0'; ++i)
      if (letter == capitals[i] || letter == capitals[i] - 'A' + 'a') return i;
    return -1;
  }
};

// Arguments of CBLAS: values, and numbers for enumerators.
struct Cblas {
  static constexpr Layout layout(int number) {
    return number == 101 ? Layout::row_major : number == 102 ? Layout::column_major : Layout::invalid;
  }
  static constexpr Op op(int number) { return enumerator_at<Op>(number - 111); }
  static constexpr Uplo uplo(int number) { return enumerator_at<Uplo>(number - 121); }
  static constexpr Diag diag(int number) { return enumerator_at<Diag>(number - 131); }
  static constexpr Side side(int number) { return enumerator_at<Side>(number - 141); }
  static constexpr std::int64_t number(std::int64_t value) { return value; }
  static constexpr const void* scalar(const void* value) { return value; }
  static constexpr const void* scalar(const float& value) { return &value; }
  static constexpr const void* scalar(const double& value) { return &value; }
};

struct Invocation : drop_in::Invocation {
  // Numbers that the caller of CBLAS passed for the enumerators, in the order of the arguments, the layout
  // first; nullptr: a call of Fortran.
  const int* enumerators = nullptr;
};

// Reference to a callable that calls the next BLAS. It returns false if the next BLAS lacks the routine.
using Forward = Reference<bool()>;

// Computes a product that belongs to another routine by the gemm of the next BLAS. Returns false if the next
// BLAS has no gemm, or if a size exceeds its 32-bit integers.
bool call_next_gemm(const Call& product);

// Returns the threads that the next BLAS of that name would use for a call now; 0 if it does not say. So the
// variables, functions and packages by which a program limits OpenBLAS or MKL limit emulated calls too.
int next_threads(Symbol& symbol);

// Returns the path of a loaded library that has a gemm under one of the names of this library; "" if there
// is none.
const char* loaded_blas();

// The first wrong argument of a call, in the order of the reference BLAS.
struct BadArgument {
  // Number of the argument in the Fortran routine. For a CBLAS call it is the number in the Fortran call that
  // the reference CBLAS would make for it. For an enumerator of CBLAS it is the number in the CBLAS routine.
  // 0: all arguments are right.
  int number = 0;
  const char* enumerator = nullptr;  // name of a wrong enumerator of CBLAS, as "Uplo"; else nullptr
  int value = 0;                     // value of the enumerator
};

// `enumerators`: those of the invocation.
BadArgument first_bad_argument(const Call& call, const int* enumerators);

// Calls xerbla_, or cblas_xerbla for a wrong enumerator of CBLAS, as the reference BLAS does. A program that
// defines these functions itself is reached.
void report_bad_argument(const Invocation& invocation, Layout layout, const BadArgument& bad);

// True if one of the call's ops is conjugation without transposition, which only OpenBLAS has.
inline bool has_conjugate_only_op(const Call& call) {
  return call.op_a == Op::conjugate_only || call.op_b == Op::conjugate_only;
}

}  // namespace kintsugi::blas
