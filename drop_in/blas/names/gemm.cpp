// The exported names of gemm, gemm3m and gemmt, which reference BLAS 3.12.1 calls gemmtr.
#include "names.hpp"

namespace kintsugi::blas {

namespace {

template <class Type, class Int>
void fortran_gemm(const Invocation& invocation, const char* op_a, const char* op_b, const Int* m,
                  const Int* n, const Int* k, const void* alpha, const void* a, const Int* lda, const void* b,
                  const Int* ldb, const void* beta, void* c, const Int* ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, length,
                     length);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call call = with_matrices({.type = Type::type,
                                   .convention = Convention::fortran,
                                   .op_a = op_of_letter(*op_a),
                                   .op_b = op_of_letter(*op_b),
                                   .m = *m,
                                   .n = *n,
                                   .k = *k},
                                  alpha, a, *lda, b, *ldb, beta, c, *ldc);
  answer(invocation, call, Forward(call_next_library));
}

template <class Type, class Int>
void cblas_gemm(const Invocation& invocation, int layout, int op_a, int op_b, Int m, Int n, Int k,
                const typename Type::CblasScalar& alpha, const typename Type::CblasElement* a, Int lda,
                const typename Type::CblasElement* b, Int ldb, const typename Type::CblasScalar& beta,
                typename Type::CblasElement* c, Int ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call call = with_matrices({.type = Type::type,
                                   .convention = Convention::cblas,
                                   .layout = layout_of_number(layout),
                                   .op_a = op_of_number(op_a),
                                   .op_b = op_of_number(op_b),
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .raw = {.layout = layout, .op_a = op_a, .op_b = op_b}},
                                  scalar(alpha), a, lda, b, ldb, scalar(beta), c, ldc);
  answer(invocation, call, Forward(call_next_library));
}

template <class Type, class Int>
void fortran_gemmt(const Invocation& invocation, const char* uplo, const char* op_a, const char* op_b,
                   const Int* n, const Int* k, const void* alpha, const void* a, const Int* lda,
                   const void* b, const Int* ldb, const void* beta, void* c, const Int* ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, uplo, op_a, op_b, n, k, alpha, a, lda, b, ldb, beta, c, ldc, length,
                     length, length);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call call = with_matrices({.routine = Routine::gemmt,
                                   .type = Type::type,
                                   .convention = Convention::fortran,
                                   .uplo = uplo_of_letter(*uplo),
                                   .op_a = op_of_letter(*op_a),
                                   .op_b = op_of_letter(*op_b),
                                   .m = *n,
                                   .n = *n,
                                   .k = *k},
                                  alpha, a, *lda, b, *ldb, beta, c, *ldc);
  answer(invocation, call, Forward(call_next_library));
}

template <class Type, class Int>
void cblas_gemmt(const Invocation& invocation, int layout, int uplo, int op_a, int op_b, Int n, Int k,
                 const typename Type::CblasScalar& alpha, const typename Type::CblasElement* a, Int lda,
                 const typename Type::CblasElement* b, Int ldb, const typename Type::CblasScalar& beta,
                 typename Type::CblasElement* c, Int ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, layout, uplo, op_a, op_b, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call call = with_matrices({.routine = Routine::gemmt,
                                   .type = Type::type,
                                   .convention = Convention::cblas,
                                   .layout = layout_of_number(layout),
                                   .uplo = uplo_of_number(uplo),
                                   .op_a = op_of_number(op_a),
                                   .op_b = op_of_number(op_b),
                                   .m = n,
                                   .n = n,
                                   .k = k,
                                   .raw = {.layout = layout, .uplo = uplo, .op_a = op_a, .op_b = op_b}},
                                  scalar(alpha), a, lda, b, ldb, scalar(beta), c, ldc);
  answer(invocation, call, Forward(call_next_library));
}

}  // namespace

#define GEMM_fortran(routine, type_, integer, symbol_)                                                     \
  KINTSUGI_BLAS_DEFINE(routine, type_, symbol_,                                                            \
                       (const char* op_a, const char* op_b, const integer* m, const integer* n,            \
                        const integer* k, const void* alpha, const void* a, const integer* lda,            \
                        const void* b, const integer* ldb, const void* beta, void* c, const integer* ldc), \
                       (fortran_gemm<blas::type_, integer>), op_a, op_b, m, n, k, alpha, a, lda, b, ldb,   \
                       beta, c, ldc)

#define GEMM_cblas(routine, type_, integer, symbol_)                                                     \
  KINTSUGI_BLAS_DEFINE(                                                                                  \
      routine, type_, symbol_,                                                                           \
      (int layout, int op_a, int op_b, integer m, integer n, integer k, blas::type_::CblasScalar alpha,  \
       const blas::type_::CblasElement* a, integer lda, const blas::type_::CblasElement* b, integer ldb, \
       blas::type_::CblasScalar beta, blas::type_::CblasElement* c, integer ldc),                        \
      (cblas_gemm<blas::type_, integer>), layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)

#define GEMMT_fortran(routine, type_, integer, symbol_)                                                      \
  KINTSUGI_BLAS_DEFINE(routine, type_, symbol_,                                                              \
                       (const char* uplo, const char* op_a, const char* op_b, const integer* n,              \
                        const integer* k, const void* alpha, const void* a, const integer* lda,              \
                        const void* b, const integer* ldb, const void* beta, void* c, const integer* ldc),   \
                       (fortran_gemmt<blas::type_, integer>), uplo, op_a, op_b, n, k, alpha, a, lda, b, ldb, \
                       beta, c, ldc)

#define GEMMT_cblas(routine, type_, integer, symbol_)                                                      \
  KINTSUGI_BLAS_DEFINE(                                                                                    \
      routine, type_, symbol_,                                                                             \
      (int layout, int uplo, int op_a, int op_b, integer n, integer k, blas::type_::CblasScalar alpha,     \
       const blas::type_::CblasElement* a, integer lda, const blas::type_::CblasElement* b, integer ldb,   \
       blas::type_::CblasScalar beta, blas::type_::CblasElement* c, integer ldc),                          \
      (cblas_gemmt<blas::type_, integer>), layout, uplo, op_a, op_b, n, k, alpha, a, lda, b, ldb, beta, c, \
      ldc)

#define KINTSUGI_BLAS_GEMM(routine, convention, type, integer, symbol) \
  GEMM_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_GEMMT(routine, convention, type, integer, symbol) \
  GEMMT_##convention(routine, type, integer, symbol)
#include "blas/symbols.def"

}  // namespace kintsugi::blas
