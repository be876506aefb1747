#include "check.hpp"

#include <algorithm>

namespace kintsugi::blas {

namespace {

bool is_too_small(std::int64_t leading_dimension, std::int64_t rows) {
  return leading_dimension < std::max<std::int64_t>(rows, 1);
}

bool is_bad(Op op) { return op == Op::invalid || op == Op::conjugate_only; }

// True if a rank-k update accepts `op`. herk and her2k refuse op = T. Complex syrk and syr2k refuse op = C.
bool accepts(const Call& call, Op op) {
  if (is_bad(op)) return false;
  const bool is_hermitian = call.routine == Routine::herk || call.routine == Routine::her2k;
  return is_hermitian ? op != Op::t : op != Op::c || !is_complex(call.type);
}

// ------------------------------------------------------------------ Fortran, one function an argument list

int first_bad_argument_of_gemm(const Call& call) {
  if (is_bad(call.op_a)) return 1;
  if (is_bad(call.op_b)) return 2;
  if (call.m < 0) return 3;
  if (call.n < 0) return 4;
  if (call.k < 0) return 5;
  if (is_too_small(call.lda, call.op_a == Op::n ? call.m : call.k)) return 8;
  if (is_too_small(call.ldb, call.op_b == Op::n ? call.k : call.n)) return 10;
  if (is_too_small(call.ldc, call.m)) return 13;
  return 0;
}

int first_bad_argument_of_gemmt(const Call& call) {
  if (call.uplo == Uplo::invalid) return 1;
  if (is_bad(call.op_a)) return 2;
  if (is_bad(call.op_b)) return 3;
  if (call.n < 0) return 4;
  if (call.k < 0) return 5;
  if (is_too_small(call.lda, call.op_a == Op::n ? call.n : call.k)) return 8;
  if (is_too_small(call.ldb, call.op_b == Op::n ? call.k : call.n)) return 10;
  if (is_too_small(call.ldc, call.n)) return 13;
  return 0;
}

// For syrk, herk, syr2k and her2k.
int first_bad_argument_of_update(const Call& call) {
  const bool has_b = call.routine == Routine::syr2k || call.routine == Routine::her2k;
  const std::int64_t rows = call.op_a == Op::n ? call.n : call.k;
  if (call.uplo == Uplo::invalid) return 1;
  if (!accepts(call, call.op_a)) return 2;
  if (call.n < 0) return 3;
  if (call.k < 0) return 4;
  if (is_too_small(call.lda, rows)) return 7;
  if (has_b && is_too_small(call.ldb, rows)) return 9;
  if (is_too_small(call.ldc, call.n)) return has_b ? 12 : 10;
  return 0;
}

int first_bad_argument_of_symm(const Call& call) {
  if (call.side == Side::invalid) return 1;
  if (call.uplo == Uplo::invalid) return 2;
  if (call.m < 0) return 3;
  if (call.n < 0) return 4;
  if (is_too_small(call.lda, order_of_a(call))) return 7;
  if (is_too_small(call.ldb, call.m)) return 9;
  if (is_too_small(call.ldc, call.m)) return 12;
  return 0;
}

int first_bad_argument_of_trmm(const Call& call) {
  if (call.side == Side::invalid) return 1;
  if (call.uplo == Uplo::invalid) return 2;
  if (is_bad(call.op_a)) return 3;
  if (call.diag == Diag::invalid) return 4;
  if (call.m < 0) return 5;
  if (call.n < 0) return 6;
  if (is_too_small(call.lda, order_of_a(call))) return 9;
  if (is_too_small(call.ldc, call.m)) return 11;
  return 0;
}

int first_bad_argument_of_fortran(const Call& call) {
  switch (call.routine) {
    case Routine::gemm: return first_bad_argument_of_gemm(call);
    case Routine::gemmt: return first_bad_argument_of_gemmt(call);
    case Routine::symm:
    case Routine::hemm: return first_bad_argument_of_symm(call);
    case Routine::trmm:
    case Routine::trsm: return first_bad_argument_of_trmm(call);
    default: return first_bad_argument_of_update(call);
  }
}

// ------------------------------------------------------------------ CBLAS

// True if the reference CBLAS refuses the op before it calls Fortran. It does so for the op of a row-major
// rank-k update, and for every unknown op.
bool is_bad_of_cblas(const Call& call, Op op) {
  if (op == Op::invalid) return true;
  const bool is_update =
      has_uplo(call.routine) && call.routine <= Routine::her2k && call.routine != Routine::gemmt;
  return is_update && call.layout == Layout::row_major && !accepts(call, op);
}

BadArgument first_bad_enumerator(const Call& call) {
  struct Enumerator {
    bool is_argument;  // false: the routine lacks it
    bool is_bad;
    const char* name;
    int value;
  };
  const Routine routine = call.routine;
  const bool has_two_ops = has_op_b(routine);
  const Enumerator in_order[] = {
      {true, call.layout == Layout::invalid, "layout", call.raw.layout},
      {has_side(routine), call.side == Side::invalid, "Side", call.raw.side},
      {has_uplo(routine), call.uplo == Uplo::invalid, "Uplo", call.raw.uplo},
      {has_op_a(routine), is_bad_of_cblas(call, call.op_a), has_two_ops ? "TransA" : "Trans", call.raw.op_a},
      {has_two_ops, is_bad_of_cblas(call, call.op_b), "TransB", call.raw.op_b},
      {has_diag(routine), call.diag == Diag::invalid, "Diag", call.raw.diag}};
  int number = 0;
  for (const Enumerator& enumerator : in_order) {
    if (!enumerator.is_argument) continue;
    ++number;
    if (enumerator.is_bad) return {number, enumerator.name, enumerator.value};
  }
  return {};
}

}  // namespace

bool has_conjugate_only_op(const Call& call) {
  return call.op_a == Op::conjugate_only || call.op_b == Op::conjugate_only;
}

BadArgument first_bad_argument(const Call& call) {
  if (call.convention == Convention::cblas) {
    if (const BadArgument bad = first_bad_enumerator(call); bad.number != 0) return bad;
  }
  // A column-major call is checked in place, since a copy takes longer than the checks.
  const int number = call.layout == Layout::row_major ? first_bad_argument_of_fortran(as_column_major(call))
                                                      : first_bad_argument_of_fortran(call);
  return {number, nullptr, 0};
}

}  // namespace kintsugi::blas
