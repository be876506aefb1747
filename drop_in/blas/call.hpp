// A call of a level-3 routine as the caller wrote it, whatever its convention and type of integers.
#pragma once

#include <kintsugi/kintsugi.h>

#include <algorithm>
#include <cstdint>

#include "common/accuracy.hpp"

namespace kintsugi::blas {

// gemmtr is counted as gemmt, and gemm3m as gemm.
enum class Routine : std::uint8_t { gemm, gemmt, syrk, herk, syr2k, her2k, symm, hemm, trmm, trsm };

enum class Convention : std::uint8_t { fortran, cblas };

// `conjugate_only` is conjugation without transposition ('R', CblasConjNoTrans), an extension of OpenBLAS.
enum class Op : std::uint8_t { n, t, c, conjugate_only, invalid };

enum class Layout : std::uint8_t { column_major, row_major, invalid };
enum class Side : std::uint8_t { left, right, invalid };
enum class Uplo : std::uint8_t { upper, lower, invalid };
enum class Diag : std::uint8_t { non_unit, unit, invalid };

struct Site;

// Enumerators of a CBLAS call as the caller passed them, for messages.
struct RawEnumerators {
  int layout = 0, side = 0, uplo = 0, op_a = 0, op_b = 0, diag = 0;
};

// Arguments of a call. Members that the routine lacks keep their defaults. For routines that write a triangle
// of C, m = n. `c` is the matrix that the routine writes: for trmm and trsm the caller's B. alpha and beta
// have the type of the matrices, except that alpha of herk and beta of herk and her2k are real.
struct Call {
  Routine routine = Routine::gemm;
  kintsugi_type type = KINTSUGI_F64;
  Convention convention = Convention::fortran;
  Layout layout = Layout::column_major;
  Side side = Side::left;
  Uplo uplo = Uplo::lower;
  Op op_a = Op::n, op_b = Op::n;
  Diag diag = Diag::non_unit;
  std::int64_t m = 0, n = 0, k = 0;
  const void* alpha = nullptr;
  const void* a = nullptr;
  std::int64_t lda = 1;
  const void* b = nullptr;
  std::int64_t ldb = 1;
  const void* beta = nullptr;
  void* c = nullptr;
  std::int64_t ldc = 1;
  RawEnumerators raw = {};
  const Site* site = nullptr;  // the call site; nullptr without KINTSUGI_SITES
};

using drop_in::is_complex;
using drop_in::is_single;

constexpr bool has_side(Routine routine) { return routine >= Routine::symm; }
constexpr bool has_diag(Routine routine) { return routine >= Routine::trmm; }
constexpr bool has_uplo(Routine routine) { return routine != Routine::gemm; }
constexpr bool has_op_a(Routine routine) { return routine != Routine::symm && routine != Routine::hemm; }
constexpr bool has_op_b(Routine routine) { return routine <= Routine::gemmt; }

// Order of the symmetric or triangular matrix A of a routine that has a side.
constexpr std::int64_t order_of_a(const Call& call) { return call.side == Side::left ? call.m : call.n; }

// Returns the column-major call that computes the same result in the same memory, by transposing the
// equation. A wrong op of a row-major rank-k update may become a right one, so such ops must be checked
// before. The alpha of a row-major her2k is not conjugated here: see compose_typed().
Call as_column_major(Call call);

// The functions ..._of_letter() return the enumerator for a letter of BLAS; `invalid` for any other letter.
constexpr Op op_of_letter(char letter) {
  switch (letter) {
    case 'N':
    case 'n': return Op::n;
    case 'T':
    case 't': return Op::t;
    case 'C':
    case 'c': return Op::c;
    case 'R':
    case 'r': return Op::conjugate_only;
    default: return Op::invalid;
  }
}
constexpr Side side_of_letter(char letter) {
  return letter == 'L' || letter == 'l'   ? Side::left
         : letter == 'R' || letter == 'r' ? Side::right
                                          : Side::invalid;
}
constexpr Uplo uplo_of_letter(char letter) {
  return letter == 'U' || letter == 'u'   ? Uplo::upper
         : letter == 'L' || letter == 'l' ? Uplo::lower
                                          : Uplo::invalid;
}
constexpr Diag diag_of_letter(char letter) {
  return letter == 'N' || letter == 'n'   ? Diag::non_unit
         : letter == 'U' || letter == 'u' ? Diag::unit
                                          : Diag::invalid;
}

// The functions ..._of_number() return the enumerator for a number of CBLAS; `invalid` for any other number.
constexpr Op op_of_number(int number) {
  switch (number) {
    case 111: return Op::n;
    case 112: return Op::t;
    case 113: return Op::c;
    case 114: return Op::conjugate_only;
    default: return Op::invalid;
  }
}
constexpr Layout layout_of_number(int number) {
  return number == 101 ? Layout::row_major : number == 102 ? Layout::column_major : Layout::invalid;
}
constexpr Side side_of_number(int number) {
  return number == 141 ? Side::left : number == 142 ? Side::right : Side::invalid;
}
constexpr Uplo uplo_of_number(int number) {
  return number == 121 ? Uplo::upper : number == 122 ? Uplo::lower : Uplo::invalid;
}
constexpr Diag diag_of_number(int number) {
  return number == 131 ? Diag::non_unit : number == 132 ? Diag::unit : Diag::invalid;
}

}  // namespace kintsugi::blas
