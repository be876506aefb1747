// The exported names of level-3 routines that are divided into products. Smaller calls of a routine use the
// caller's type of integers, since their sizes do not exceed the caller's sizes.
#include "cublas/level3/answer.hpp"
#include "names.hpp"

namespace kintsugi::cublas {

namespace {

// Answers the call. `real` calls cuBLAS's routine with the arguments of a given call: the caller's or a
// smaller one.
template <class Real>
int answer_routine(Symbol& symbol, Handle handle, const RoutineCall& call, const Real& real) {
  if (!intercepts()) return real(call);
  return answer(symbol, handle, call, ForwardRoutine(real));
}

template <class Int>
int update(Symbol& symbol, Routine routine, kintsugi_type type, Handle handle, int uplo, int op, Int n, Int k,
           const void* alpha, const void* a, Int lda, const void* beta, void* c, Int ldc) {
  const auto real = [&](const RoutineCall& native) {
    return call_real(symbol, handle, native.uplo, native.op, static_cast<Int>(native.n),
                     static_cast<Int>(native.k), native.alpha, native.a, static_cast<Int>(native.lda),
                     native.beta, native.c, static_cast<Int>(native.ldc));
  };
  RoutineCall call{.routine = routine, .type = type, .uplo = uplo, .op = op, .m = n, .n = n, .k = k};
  call.alpha = alpha;
  call.a = a;
  call.lda = lda;
  call.beta = beta;
  call.c = c;
  call.ldc = ldc;
  return answer_routine(symbol, handle, call, real);
}

template <class Int>
int symmetric(Symbol& symbol, Routine routine, kintsugi_type type, Handle handle, int side, int uplo, Int m,
              Int n, const void* alpha, const void* a, Int lda, const void* b, Int ldb, const void* beta,
              void* c, Int ldc) {
  const auto real = [&](const RoutineCall& native) {
    return call_real(symbol, handle, native.side, native.uplo, static_cast<Int>(native.m),
                     static_cast<Int>(native.n), native.alpha, native.a, static_cast<Int>(native.lda),
                     native.b, static_cast<Int>(native.ldb), native.beta, native.c,
                     static_cast<Int>(native.ldc));
  };
  RoutineCall call{.routine = routine, .type = type, .side = side, .uplo = uplo, .m = m, .n = n};
  call.alpha = alpha;
  call.a = a;
  call.lda = lda;
  call.b = b;
  call.ldb = ldb;
  call.beta = beta;
  call.c = c;
  call.ldc = ldc;
  return answer_routine(symbol, handle, call, real);
}

template <class Int>
int solve(Symbol& symbol, kintsugi_type type, Handle handle, int side, int uplo, int op, int diag, Int m,
          Int n, const void* alpha, const void* a, Int lda, void* b, Int ldb) {
  const auto real = [&](const RoutineCall& native) {
    return call_real(symbol, handle, native.side, native.uplo, native.op, native.diag,
                     static_cast<Int>(native.m), static_cast<Int>(native.n), native.alpha, native.a,
                     static_cast<Int>(native.lda), native.c, static_cast<Int>(native.ldc));
  };
  RoutineCall call{.routine = Routine::trsm,
                   .type = type,
                   .side = side,
                   .uplo = uplo,
                   .op = op,
                   .diag = diag,
                   .m = m,
                   .n = n};
  call.alpha = alpha;
  call.a = a;
  call.lda = lda;
  call.c = b;
  call.ldc = ldb;
  return answer_routine(symbol, handle, call, real);
}

}  // namespace

#define KINTSUGI_CUBLAS_UPDATE(type_, integer, routine, symbol_)                                          \
  KINTSUGI_CUBLAS_DEFINE(symbol_,                                                                         \
                         (Handle handle, int uplo, int op, integer n, integer k, const void* alpha,       \
                          const void* a, integer lda, const void* beta, void* c, integer ldc),            \
                         update<integer>, Routine::routine, type_, handle, uplo, op, n, k, alpha, a, lda, \
                         beta, c, ldc)

#define KINTSUGI_CUBLAS_SYMMETRIC(type_, integer, routine, symbol_)                                          \
  KINTSUGI_CUBLAS_DEFINE(                                                                                    \
      symbol_,                                                                                               \
      (Handle handle, int side, int uplo, integer m, integer n, const void* alpha, const void* a,            \
       integer lda, const void* b, integer ldb, const void* beta, void* c, integer ldc),                     \
      symmetric<integer>, Routine::routine, type_, handle, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, \
      ldc)

#define KINTSUGI_CUBLAS_SOLVE(type_, integer, symbol_)                                               \
  KINTSUGI_CUBLAS_DEFINE(symbol_,                                                                    \
                         (Handle handle, int side, int uplo, int op, int diag, integer m, integer n, \
                          const void* alpha, const void* a, integer lda, void* b, integer ldb),      \
                         solve<integer>, type_, handle, side, uplo, op, diag, m, n, alpha, a, lda, b, ldb)

#include "cublas/symbols.def"

}  // namespace kintsugi::cublas
