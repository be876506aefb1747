// The exported names of single products.
#include "names.hpp"

namespace kintsugi::cublas {

namespace {

template <class Int>
int gemm(Symbol& symbol, kintsugi_type type, Handle handle, int op_a, int op_b, Int m, Int n, Int k,
         const void* alpha, const void* a, Int lda, const void* b, Int ldb, const void* beta, void* c,
         Int ldc) {
  const auto forward = [&] {
    return call_real(symbol, handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  };
  if (!intercepts()) return forward();
  const Call call = product(type, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  return answer(symbol, handle, call, Forward(forward));
}

template <class Int>
int typed_gemm(Symbol& symbol, kintsugi_type type, Handle handle, int op_a, int op_b, Int m, Int n, Int k,
               const void* alpha, const void* a, int type_a, Int lda, const void* b, int type_b, Int ldb,
               const void* beta, void* c, int type_c, Int ldc) {
  const auto forward = [&] {
    return call_real(symbol, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                     type_c, ldc);
  };
  if (!intercepts()) return forward();
  const Call call = product(type_of_all({type_a, type_b, type_c}, type), op_a, op_b, m, n, k, alpha, a, lda,
                            b, ldb, beta, c, ldc);
  return answer(symbol, handle, call, Forward(forward));
}

template <class Int>
int gemm_ex(Symbol& symbol, Handle handle, int op_a, int op_b, Int m, Int n, Int k, const void* alpha,
            const void* a, int type_a, Int lda, const void* b, int type_b, Int ldb, const void* beta, void* c,
            int type_c, Int ldc, int compute, int algorithm) {
  const auto forward = [&] {
    return call_real(symbol, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                     type_c, ldc, compute, algorithm);
  };
  if (!intercepts()) return forward();
  const Call call = product(type_of({type_a, type_b, type_c}, compute, algorithm), op_a, op_b, m, n, k, alpha,
                            a, lda, b, ldb, beta, c, ldc);
  return answer(symbol, handle, call, Forward(forward));
}

}  // namespace

#define KINTSUGI_CUBLAS_GEMM(type_, integer, symbol_)                                                        \
  KINTSUGI_CUBLAS_DEFINE(                                                                                    \
      symbol_,                                                                                               \
      (Handle handle, int op_a, int op_b, integer m, integer n, integer k, const void* alpha, const void* a, \
       integer lda, const void* b, integer ldb, const void* beta, void* c, integer ldc),                     \
      gemm<integer>, type_, handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)

#define KINTSUGI_CUBLAS_TYPED_GEMM(type_, integer, symbol_)                                                 \
  KINTSUGI_CUBLAS_DEFINE(symbol_,                                                                           \
                         (Handle handle, int op_a, int op_b, integer m, integer n, integer k,               \
                          const void* alpha, const void* a, int type_a, integer lda, const void* b,         \
                          int type_b, integer ldb, const void* beta, void* c, int type_c, integer ldc),     \
                         typed_gemm<integer>, type_, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, \
                         type_b, ldb, beta, c, type_c, ldc)

#define KINTSUGI_CUBLAS_GEMM_EX(integer, symbol_)                                                            \
  KINTSUGI_CUBLAS_DEFINE(                                                                                    \
      symbol_,                                                                                               \
      (Handle handle, int op_a, int op_b, integer m, integer n, integer k, const void* alpha, const void* a, \
       int type_a, integer lda, const void* b, int type_b, integer ldb, const void* beta, void* c,           \
       int type_c, integer ldc, int compute, int algorithm),                                                 \
      gemm_ex<integer>, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, \
      ldc, compute, algorithm)

#include "cublas/symbols.def"

}  // namespace kintsugi::cublas
