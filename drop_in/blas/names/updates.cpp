// The exported names of syrk, herk, syr2k and her2k.
#include "names.hpp"

namespace kintsugi::blas {

namespace {

template <Routine routine, class Type, class Int>
void fortran_syrk(const Invocation& invocation, const char* uplo, const char* op, const Int* n, const Int* k,
                  const void* alpha, const void* a, const Int* lda, const void* beta, void* c,
                  const Int* ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, uplo, op, n, k, alpha, a, lda, beta, c, ldc, length, length);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call call{.routine = routine,
                  .type = Type::type,
                  .convention = Convention::fortran,
                  .uplo = uplo_of_letter(*uplo),
                  .op_a = op_of_letter(*op),
                  .m = *n,
                  .n = *n,
                  .k = *k,
                  .alpha = alpha,
                  .a = a,
                  .lda = *lda,
                  .beta = beta,
                  .c = c,
                  .ldc = *ldc};
  answer(invocation, call, Forward(call_next_library));
}

template <Routine routine, class Type, class Int>
void cblas_syrk(const Invocation& invocation, int layout, int uplo, int op, Int n, Int k,
                const CblasAlpha<routine, Type>& alpha, const typename Type::CblasElement* a, Int lda,
                const CblasBeta<routine, Type>& beta, typename Type::CblasElement* c, Int ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, layout, uplo, op, n, k, alpha, a, lda, beta, c, ldc);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call call{.routine = routine,
                  .type = Type::type,
                  .convention = Convention::cblas,
                  .layout = layout_of_number(layout),
                  .uplo = uplo_of_number(uplo),
                  .op_a = op_of_number(op),
                  .m = n,
                  .n = n,
                  .k = k,
                  .alpha = scalar(alpha),
                  .a = a,
                  .lda = lda,
                  .beta = scalar(beta),
                  .c = c,
                  .ldc = ldc,
                  .raw = {.layout = layout, .uplo = uplo, .op_a = op}};
  answer(invocation, call, Forward(call_next_library));
}

template <Routine routine, class Type, class Int>
void fortran_syr2k(const Invocation& invocation, const char* uplo, const char* op, const Int* n, const Int* k,
                   const void* alpha, const void* a, const Int* lda, const void* b, const Int* ldb,
                   const void* beta, void* c, const Int* ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, uplo, op, n, k, alpha, a, lda, b, ldb, beta, c, ldc, length, length);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call call = with_matrices({.routine = routine,
                                   .type = Type::type,
                                   .convention = Convention::fortran,
                                   .uplo = uplo_of_letter(*uplo),
                                   .op_a = op_of_letter(*op),
                                   .m = *n,
                                   .n = *n,
                                   .k = *k},
                                  alpha, a, *lda, b, *ldb, beta, c, *ldc);
  answer(invocation, call, Forward(call_next_library));
}

template <Routine routine, class Type, class Int>
void cblas_syr2k(const Invocation& invocation, int layout, int uplo, int op, Int n, Int k,
                 const CblasAlpha<routine, Type>& alpha, const typename Type::CblasElement* a, Int lda,
                 const typename Type::CblasElement* b, Int ldb, const CblasBeta<routine, Type>& beta,
                 typename Type::CblasElement* c, Int ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, layout, uplo, op, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call call = with_matrices({.routine = routine,
                                   .type = Type::type,
                                   .convention = Convention::cblas,
                                   .layout = layout_of_number(layout),
                                   .uplo = uplo_of_number(uplo),
                                   .op_a = op_of_number(op),
                                   .m = n,
                                   .n = n,
                                   .k = k,
                                   .raw = {.layout = layout, .uplo = uplo, .op_a = op}},
                                  scalar(alpha), a, lda, b, ldb, scalar(beta), c, ldc);
  answer(invocation, call, Forward(call_next_library));
}

}  // namespace

#define SYRK_fortran(routine, type_, integer, symbol_)                                          \
  KINTSUGI_BLAS_DEFINE(                                                                         \
      routine, type_, symbol_,                                                                  \
      (const char* uplo, const char* op, const integer* n, const integer* k, const void* alpha, \
       const void* a, const integer* lda, const void* beta, void* c, const integer* ldc),       \
      (fortran_syrk<Routine::routine, blas::type_, integer>), uplo, op, n, k, alpha, a, lda, beta, c, ldc)

#define SYRK_cblas(routine, type_, integer, symbol_)                                                        \
  KINTSUGI_BLAS_DEFINE(                                                                                     \
      routine, type_, symbol_,                                                                              \
      (int layout, int uplo, int op, integer n, integer k, CblasAlpha<Routine::routine, blas::type_> alpha, \
       const blas::type_::CblasElement* a, integer lda, CblasBeta<Routine::routine, blas::type_> beta,      \
       blas::type_::CblasElement* c, integer ldc),                                                          \
      (cblas_syrk<Routine::routine, blas::type_, integer>), layout, uplo, op, n, k, alpha, a, lda, beta, c, \
      ldc)

#define SYR2K_fortran(routine, type_, integer, symbol_)                                                   \
  KINTSUGI_BLAS_DEFINE(routine, type_, symbol_,                                                           \
                       (const char* uplo, const char* op, const integer* n, const integer* k,             \
                        const void* alpha, const void* a, const integer* lda, const void* b,              \
                        const integer* ldb, const void* beta, void* c, const integer* ldc),               \
                       (fortran_syr2k<Routine::routine, blas::type_, integer>), uplo, op, n, k, alpha, a, \
                       lda, b, ldb, beta, c, ldc)

#define SYR2K_cblas(routine, type_, integer, symbol_)                                                       \
  KINTSUGI_BLAS_DEFINE(                                                                                     \
      routine, type_, symbol_,                                                                              \
      (int layout, int uplo, int op, integer n, integer k, CblasAlpha<Routine::routine, blas::type_> alpha, \
       const blas::type_::CblasElement* a, integer lda, const blas::type_::CblasElement* b, integer ldb,    \
       CblasBeta<Routine::routine, blas::type_> beta, blas::type_::CblasElement* c, integer ldc),           \
      (cblas_syr2k<Routine::routine, blas::type_, integer>), layout, uplo, op, n, k, alpha, a, lda, b, ldb, \
      beta, c, ldc)

#define KINTSUGI_BLAS_SYRK(routine, convention, type, integer, symbol) \
  SYRK_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_SYR2K(routine, convention, type, integer, symbol) \
  SYR2K_##convention(routine, type, integer, symbol)
#include "blas/symbols.def"

}  // namespace kintsugi::blas
