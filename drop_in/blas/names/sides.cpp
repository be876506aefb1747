// The exported names of symm, hemm, trmm and trsm.
#include "names.hpp"

namespace kintsugi::blas {

namespace {

template <Routine routine, class Type, class Int>
void fortran_symm(const Invocation& invocation, const char* side, const char* uplo, const Int* m,
                  const Int* n, const void* alpha, const void* a, const Int* lda, const void* b,
                  const Int* ldb, const void* beta, void* c, const Int* ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc, length,
                     length);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Side known = side_of_letter(*side);
  const Call call = with_matrices({.routine = routine,
                                   .type = Type::type,
                                   .convention = Convention::fortran,
                                   .side = known,
                                   .uplo = uplo_of_letter(*uplo),
                                   .m = *m,
                                   .n = *n,
                                   .k = known == Side::left ? *m : *n},
                                  alpha, a, *lda, b, *ldb, beta, c, *ldc);
  answer(invocation, call, Forward(call_next_library));
}

template <Routine routine, class Type, class Int>
void cblas_symm(const Invocation& invocation, int layout, int side, int uplo, Int m, Int n,
                const typename Type::CblasScalar& alpha, const typename Type::CblasElement* a, Int lda,
                const typename Type::CblasElement* b, Int ldb, const typename Type::CblasScalar& beta,
                typename Type::CblasElement* c, Int ldc) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, layout, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Side known = side_of_number(side);
  const Call call = with_matrices({.routine = routine,
                                   .type = Type::type,
                                   .convention = Convention::cblas,
                                   .layout = layout_of_number(layout),
                                   .side = known,
                                   .uplo = uplo_of_number(uplo),
                                   .m = m,
                                   .n = n,
                                   .k = known == Side::left ? m : n,
                                   .raw = {.layout = layout, .side = side, .uplo = uplo}},
                                  scalar(alpha), a, lda, b, ldb, scalar(beta), c, ldc);
  answer(invocation, call, Forward(call_next_library));
}

template <Routine routine, class Type, class Int>
void fortran_trmm(const Invocation& invocation, const char* side, const char* uplo, const char* op,
                  const char* diag, const Int* m, const Int* n, const void* alpha, const void* a,
                  const Int* lda, void* b, const Int* ldb) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, side, uplo, op, diag, m, n, alpha, a, lda, b, ldb, length, length,
                     length, length);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Side known = side_of_letter(*side);
  const Call call{.routine = routine,
                  .type = Type::type,
                  .convention = Convention::fortran,
                  .side = known,
                  .uplo = uplo_of_letter(*uplo),
                  .op_a = op_of_letter(*op),
                  .diag = diag_of_letter(*diag),
                  .m = *m,
                  .n = *n,
                  .k = known == Side::left ? *m : *n,
                  .alpha = alpha,
                  .a = a,
                  .lda = *lda,
                  .c = b,
                  .ldc = *ldb};
  answer(invocation, call, Forward(call_next_library));
}

template <Routine routine, class Type, class Int>
void cblas_trmm(const Invocation& invocation, int layout, int side, int uplo, int op, int diag, Int m, Int n,
                const typename Type::CblasScalar& alpha, const typename Type::CblasElement* a, Int lda,
                typename Type::CblasElement* b, Int ldb) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, layout, side, uplo, op, diag, m, n, alpha, a, lda, b, ldb);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Side known = side_of_number(side);
  const Call call{.routine = routine,
                  .type = Type::type,
                  .convention = Convention::cblas,
                  .layout = layout_of_number(layout),
                  .side = known,
                  .uplo = uplo_of_number(uplo),
                  .op_a = op_of_number(op),
                  .diag = diag_of_number(diag),
                  .m = m,
                  .n = n,
                  .k = known == Side::left ? m : n,
                  .alpha = scalar(alpha),
                  .a = a,
                  .lda = lda,
                  .c = b,
                  .ldc = ldb,
                  .raw = {.layout = layout, .side = side, .uplo = uplo, .op_a = op, .diag = diag}};
  answer(invocation, call, Forward(call_next_library));
}

}  // namespace

#define SYMM_fortran(routine, type_, integer, symbol_)                                                     \
  KINTSUGI_BLAS_DEFINE(routine, type_, symbol_,                                                            \
                       (const char* side, const char* uplo, const integer* m, const integer* n,            \
                        const void* alpha, const void* a, const integer* lda, const void* b,               \
                        const integer* ldb, const void* beta, void* c, const integer* ldc),                \
                       (fortran_symm<Routine::routine, blas::type_, integer>), side, uplo, m, n, alpha, a, \
                       lda, b, ldb, beta, c, ldc)

#define SYMM_cblas(routine, type_, integer, symbol_)                                                         \
  KINTSUGI_BLAS_DEFINE(                                                                                      \
      routine, type_, symbol_,                                                                               \
      (int layout, int side, int uplo, integer m, integer n, blas::type_::CblasScalar alpha,                 \
       const blas::type_::CblasElement* a, integer lda, const blas::type_::CblasElement* b, integer ldb,     \
       blas::type_::CblasScalar beta, blas::type_::CblasElement* c, integer ldc),                            \
      (cblas_symm<Routine::routine, blas::type_, integer>), layout, side, uplo, m, n, alpha, a, lda, b, ldb, \
      beta, c, ldc)

#define TRMM_fortran(routine, type_, integer, symbol_)                                                       \
  KINTSUGI_BLAS_DEFINE(                                                                                      \
      routine, type_, symbol_,                                                                               \
      (const char* side, const char* uplo, const char* op, const char* diag, const integer* m,               \
       const integer* n, const void* alpha, const void* a, const integer* lda, void* b, const integer* ldb), \
      (fortran_trmm<Routine::routine, blas::type_, integer>), side, uplo, op, diag, m, n, alpha, a, lda, b,  \
      ldb)

#define TRMM_cblas(routine, type_, integer, symbol_)                                                       \
  KINTSUGI_BLAS_DEFINE(routine, type_, symbol_,                                                            \
                       (int layout, int side, int uplo, int op, int diag, integer m, integer n,            \
                        blas::type_::CblasScalar alpha, const blas::type_::CblasElement* a, integer lda,   \
                        blas::type_::CblasElement* b, integer ldb),                                        \
                       (cblas_trmm<Routine::routine, blas::type_, integer>), layout, side, uplo, op, diag, \
                       m, n, alpha, a, lda, b, ldb)

#define KINTSUGI_BLAS_SYMM(routine, convention, type, integer, symbol) \
  SYMM_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_TRMM(routine, convention, type, integer, symbol) \
  TRMM_##convention(routine, type, integer, symbol)
#include "blas/symbols.def"

}  // namespace kintsugi::blas
