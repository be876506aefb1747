#include "call.hpp"

#include <utility>

namespace kintsugi::blas {

namespace {

void exchange_operands(Call& call) {
  std::swap(call.op_a, call.op_b);
  std::swap(call.a, call.b);
  std::swap(call.lda, call.ldb);
}

Uplo other(Uplo uplo) {
  if (uplo == Uplo::invalid) return uplo;
  return uplo == Uplo::upper ? Uplo::lower : Uplo::upper;
}

Side other(Side side) {
  if (side == Side::invalid) return side;
  return side == Side::left ? Side::right : Side::left;
}

// Returns the op with which a rank-k update of A^T gives the result of the update of A with `op`.
// `transposition`: Op::t for syrk and syr2k, Op::c for herk and her2k.
Op other(Op op, Op transposition) {
  if (op == Op::n) return transposition;
  const bool is_transposing = op == Op::t || op == Op::c;
  return is_transposing ? Op::n : op;
}

}  // namespace

Call as_column_major(Call call) {
  if (call.layout != Layout::row_major) return call;
  call.layout = Layout::column_major;
  call.uplo = other(call.uplo);
  switch (call.routine) {
    case Routine::gemm:
    case Routine::gemmt:
      exchange_operands(call);
      std::swap(call.m, call.n);
      break;
    case Routine::syrk:
    case Routine::syr2k: call.op_a = other(call.op_a, Op::t); break;
    case Routine::herk:
    case Routine::her2k: call.op_a = other(call.op_a, Op::c); break;
    case Routine::symm:
    case Routine::hemm:
    case Routine::trmm:
    case Routine::trsm:
      call.side = other(call.side);
      std::swap(call.m, call.n);
      break;
  }
  return call;
}

}  // namespace kintsugi::blas
