#include "call.hpp"

#include <utility>

namespace kintsugi::drop_in {

namespace {

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
  return op == Op::t || op == Op::c ? Op::n : op;
}

}  // namespace

Call product(kintsugi_type type, Op op_a, Op op_b, std::int64_t m, std::int64_t n, std::int64_t k,
             const void* alpha, const void* a, std::int64_t lda, const void* b, std::int64_t ldb,
             const void* beta, void* c, std::int64_t ldc) {
  return {.op_a = op_a,
          .op_b = op_b,
          .type = type,
          .m = m,
          .n = n,
          .k = k,
          .alpha = alpha,
          .a = a,
          .lda = lda,
          .b = b,
          .ldb = ldb,
          .beta = beta,
          .c = c,
          .ldc = ldc};
}

bool is_zero(const void* scalar, kintsugi_type type) {
  const auto all_zero = [&](const auto* parts) {
    return parts[0] == 0 && (!is_complex(type) || parts[1] == 0);
  };
  return is_single(type) ? all_zero(static_cast<const float*>(scalar))
                         : all_zero(static_cast<const double*>(scalar));
}

Call as_column_major(Call call) {
  if (call.layout != Layout::row_major) return call;
  call.layout = Layout::column_major;
  call.uplo = other(call.uplo);
  if (has_op_b(call.routine)) {
    std::swap(call.op_a, call.op_b);
    std::swap(call.a, call.b);
    std::swap(call.lda, call.ldb);
    std::swap(call.stride_a, call.stride_b);
    std::swap(call.m, call.n);
  } else if (has_side(call.routine)) {
    call.side = other(call.side);
    std::swap(call.m, call.n);
  } else {
    call.op_a = other(call.op_a, is_hermitian(call.routine) ? Op::c : Op::t);
  }
  return call;
}

kintsugi_problem problem_of(const Call& call) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = call.m;
  problem.n = call.n;
  problem.k = call.k;
  problem.lda = call.lda;
  problem.ldb = call.ldb;
  problem.ldc = call.ldc;
  problem.batch_count = call.count;
  problem.stride_a = call.stride_a;
  problem.stride_b = call.stride_b;
  problem.stride_c = call.stride_c;
  problem.batch_kind = call.batch == BatchKind::pointers ? KINTSUGI_BATCH_POINTERS : KINTSUGI_BATCH_STRIDED;
  problem.op_a = static_cast<int>(call.op_a);
  problem.op_b = static_cast<int>(call.op_b);
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = call.type;
  problem.layout = call.layout == Layout::row_major ? KINTSUGI_ROW_MAJOR : KINTSUGI_COLUMN_MAJOR;
  return problem;
}

}  // namespace kintsugi::drop_in
