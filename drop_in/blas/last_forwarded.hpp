// The problem that a thread forwarded last. A call of the same problem is forwarded without checks and
// without a look-up, which would evict cache lines that a small product needs.
#pragma once

#include <cstdint>

#include "call.hpp"

namespace kintsugi::blas {

// Everything in a call that its checks and its decision depend on. One cache line.
struct alignas(64) ForwardedProblem {
  std::int64_t m = -1, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;  // m = -1: no call was forwarded
  Routine routine = Routine::gemm;
  Convention convention = Convention::fortran;
  Layout layout = Layout::column_major;
  Side side = Side::left;
  Uplo uplo = Uplo::lower;
  Op op_a = Op::n, op_b = Op::n;
  Diag diag = Diag::non_unit;
  kintsugi_type type = KINTSUGI_F64;

  bool operator==(const ForwardedProblem&) const = default;
};

inline ForwardedProblem forwarded_problem(const Call& call) {
  return {.m = call.m,
          .n = call.n,
          .k = call.k,
          .lda = call.lda,
          .ldb = call.ldb,
          .ldc = call.ldc,
          .routine = call.routine,
          .convention = call.convention,
          .layout = call.layout,
          .side = call.side,
          .uplo = call.uplo,
          .op_a = call.op_a,
          .op_b = call.op_b,
          .diag = call.diag,
          .type = call.type};
}

namespace in_force {
// Set only where every later call of the problem is forwarded too: no sites, no records, no policy `force`.
inline __attribute__((tls_model("initial-exec"))) constinit thread_local ForwardedProblem last_forwarded = {};
}  // namespace in_force

// A call with m = -1 is wrong, so it was never forwarded.
inline bool was_forwarded(const Call& call) {
  return call.m >= 0 && in_force::last_forwarded == forwarded_problem(call);
}

}  // namespace kintsugi::blas
