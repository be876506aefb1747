// The exported names of batches whose matrices are at equal distances.
#include "names.hpp"

namespace kintsugi::cublas {

namespace {

template <class Int>
int gemm_strided(Symbol& symbol, kintsugi_type type, Handle handle, int op_a, int op_b, Int m, Int n, Int k,
                 const void* alpha, const void* a, Int lda, long long stride_a, const void* b, Int ldb,
                 long long stride_b, const void* beta, void* c, Int ldc, long long stride_c, Int count) {
  const auto forward = [&] {
    return call_real(symbol, handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,
                     ldc, stride_c, count);
  };
  if (!intercepts()) return forward();
  const Call call = strided(product(type, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), stride_a,
                            stride_b, stride_c, count);
  return answer(symbol, handle, call, Forward(forward));
}

template <class Int>
int gemm_strided_ex(Symbol& symbol, Handle handle, int op_a, int op_b, Int m, Int n, Int k, const void* alpha,
                    const void* a, int type_a, Int lda, long long stride_a, const void* b, int type_b,
                    Int ldb, long long stride_b, const void* beta, void* c, int type_c, Int ldc,
                    long long stride_c, Int count, int compute, int algorithm) {
  const auto forward = [&] {
    return call_real(symbol, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb,
                     stride_b, beta, c, type_c, ldc, stride_c, count, compute, algorithm);
  };
  if (!intercepts()) return forward();
  const Call call = strided(product(type_of({type_a, type_b, type_c}, compute, algorithm), op_a, op_b, m, n,
                                    k, alpha, a, lda, b, ldb, beta, c, ldc),
                            stride_a, stride_b, stride_c, count);
  return answer(symbol, handle, call, Forward(forward));
}

}  // namespace

#define KINTSUGI_CUBLAS_STRIDED(type_, integer, symbol_)                                                     \
  KINTSUGI_CUBLAS_DEFINE(                                                                                    \
      symbol_,                                                                                               \
      (Handle handle, int op_a, int op_b, integer m, integer n, integer k, const void* alpha, const void* a, \
       integer lda, long long stride_a, const void* b, integer ldb, long long stride_b, const void* beta,    \
       void* c, integer ldc, long long stride_c, integer count),                                             \
      gemm_strided<integer>, type_, handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b,  \
      beta, c, ldc, stride_c, count)

#define KINTSUGI_CUBLAS_STRIDED_EX(integer, symbol_)                                                         \
  KINTSUGI_CUBLAS_DEFINE(                                                                                    \
      symbol_,                                                                                               \
      (Handle handle, int op_a, int op_b, integer m, integer n, integer k, const void* alpha, const void* a, \
       int type_a, integer lda, long long stride_a, const void* b, int type_b, integer ldb,                  \
       long long stride_b, const void* beta, void* c, int type_c, integer ldc, long long stride_c,           \
       integer count, int compute, int algorithm),                                                           \
      gemm_strided_ex<integer>, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b,     \
      ldb, stride_b, beta, c, type_c, ldc, stride_c, count, compute, algorithm)

#include "cublas/symbols.def"

}  // namespace kintsugi::cublas
