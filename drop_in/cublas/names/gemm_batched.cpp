// The exported names of batches whose matrices are given by pointers.
#include "names.hpp"

namespace kintsugi::cublas {

namespace {

template <class Int>
int gemm_batched(Symbol& symbol, kintsugi_type type, Handle handle, int op_a, int op_b, Int m, Int n, Int k,
                 const void* alpha, const void* const* a, Int lda, const void* const* b, Int ldb,
                 const void* beta, void* const* c, Int ldc, Int count) {
  const auto forward = [&] {
    return call_real(symbol, handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count);
  };
  if (!intercepts()) return forward();
  const Call call = by_pointers(
      product(type, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, const_cast<void**>(c), ldc), count);
  return answer(symbol, handle, call, Forward(forward));
}

template <class Int>
int gemm_batched_ex(Symbol& symbol, Handle handle, int op_a, int op_b, Int m, Int n, Int k, const void* alpha,
                    const void* const* a, int type_a, Int lda, const void* const* b, int type_b, Int ldb,
                    const void* beta, void* const* c, int type_c, Int ldc, Int count, int compute,
                    int algorithm) {
  const auto forward = [&] {
    return call_real(symbol, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                     type_c, ldc, count, compute, algorithm);
  };
  if (!intercepts()) return forward();
  const Call call = by_pointers(product(type_of({type_a, type_b, type_c}, compute, algorithm), op_a, op_b, m,
                                        n, k, alpha, a, lda, b, ldb, beta, const_cast<void**>(c), ldc),
                                count);
  return answer(symbol, handle, call, Forward(forward));
}

}  // namespace

#define KINTSUGI_CUBLAS_BATCHED(type_, integer, symbol_)                                                   \
  KINTSUGI_CUBLAS_DEFINE(symbol_,                                                                          \
                         (Handle handle, int op_a, int op_b, integer m, integer n, integer k,              \
                          const void* alpha, const void* const* a, integer lda, const void* const* b,      \
                          integer ldb, const void* beta, void* const* c, integer ldc, integer count),      \
                         gemm_batched<integer>, type_, handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, \
                         beta, c, ldc, count)

#define KINTSUGI_CUBLAS_BATCHED_EX(integer, symbol_)                                                       \
  KINTSUGI_CUBLAS_DEFINE(symbol_,                                                                          \
                         (Handle handle, int op_a, int op_b, integer m, integer n, integer k,              \
                          const void* alpha, const void* const* a, int type_a, integer lda,                \
                          const void* const* b, int type_b, integer ldb, const void* beta, void* const* c, \
                          int type_c, integer ldc, integer count, int compute, int algorithm),             \
                         gemm_batched_ex<integer>, handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b,  \
                         type_b, ldb, beta, c, type_c, ldc, count, compute, algorithm)

#include "cublas/symbols.def"

}  // namespace kintsugi::cublas
