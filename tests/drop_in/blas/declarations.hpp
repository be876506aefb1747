// The C declarations of all names. Fortran's hidden lengths of strings are left out, as C callers do.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

namespace kintsugi::test::types {
struct s {
  using Scalar = float;
  using Element = float;
  using Real = float;
};
struct d {
  using Scalar = double;
  using Element = double;
  using Real = double;
};
struct c {
  using Scalar = const void*;
  using Element = void;
  using Real = float;
};
struct z {
  using Scalar = const void*;
  using Element = void;
  using Real = double;
};
// Scalars of herk are real, and beta of her2k.
#define KINTSUGI_REAL_SCALARS_syrk false, false
#define KINTSUGI_REAL_SCALARS_herk true, true
#define KINTSUGI_REAL_SCALARS_syr2k false, false
#define KINTSUGI_REAL_SCALARS_her2k false, true
template <class Type, bool alpha_is_real, bool beta_is_real>
struct Scalars {
  using Alpha = std::conditional_t<alpha_is_real, typename Type::Real, typename Type::Scalar>;
  using Beta = std::conditional_t<beta_is_real, typename Type::Real, typename Type::Scalar>;
};
}  // namespace kintsugi::test::types

#define SCALARS(routine, type) \
  kintsugi::test::types::Scalars<kintsugi::test::types::type, KINTSUGI_REAL_SCALARS_##routine>
#define SCALAR(type) kintsugi::test::types::type::Scalar
#define MATRIX(type) kintsugi::test::types::type::Element*
#define IN_MATRIX(type) const kintsugi::test::types::type::Element*

#define FAMILY_GEMM_fortran(routine, type, integer, symbol)                                          \
  void symbol(const char*, const char*, const integer*, const integer*, const integer*, const void*, \
              const void*, const integer*, const void*, const integer*, const void*, void*, const integer*);
#define FAMILY_GEMM_cblas(routine, type, integer, symbol)                                       \
  void symbol(int, int, int, integer, integer, integer, SCALAR(type), IN_MATRIX(type), integer, \
              IN_MATRIX(type), integer, SCALAR(type), MATRIX(type), integer);
#define FAMILY_GEMMT_fortran(routine, type, integer, symbol)                                      \
  void symbol(const char*, const char*, const char*, const integer*, const integer*, const void*, \
              const void*, const integer*, const void*, const integer*, const void*, void*, const integer*);
#define FAMILY_GEMMT_cblas(routine, type, integer, symbol)                                                   \
  void symbol(int, int, int, int, integer, integer, SCALAR(type), IN_MATRIX(type), integer, IN_MATRIX(type), \
              integer, SCALAR(type), MATRIX(type), integer);
#define FAMILY_GEMM_BATCH_fortran(routine, type, integer, symbol)                                    \
  void symbol(const char*, const char*, const integer*, const integer*, const integer*, const void*, \
              const void* const*, const integer*, const void* const*, const integer*, const void*,   \
              void* const*, const integer*, const integer*, const integer*);
#define FAMILY_GEMM_BATCH_cblas(routine, type, integer, symbol)                                         \
  void symbol(int, const int*, const int*, const integer*, const integer*, const integer*, const void*, \
              const void* const*, const integer*, const void* const*, const integer*, const void*,      \
              void* const*, const integer*, integer, const integer*);
#define FAMILY_GEMM_BATCH_STRIDED_fortran(routine, type, integer, symbol)                               \
  void symbol(const char*, const char*, const integer*, const integer*, const integer*, const void*,    \
              const void*, const integer*, const integer*, const void*, const integer*, const integer*, \
              const void*, void*, const integer*, const integer*, const integer*);
#define FAMILY_GEMM_BATCH_STRIDED_cblas(routine, type, integer, symbol)                                  \
  void symbol(int, int, int, integer, integer, integer, SCALAR(type), IN_MATRIX(type), integer, integer, \
              IN_MATRIX(type), integer, integer, SCALAR(type), MATRIX(type), integer, integer, integer);
#define FAMILY_SYRK_fortran(routine, type, integer, symbol)                                       \
  void symbol(const char*, const char*, const integer*, const integer*, const void*, const void*, \
              const integer*, const void*, void*, const integer*);
#define FAMILY_SYRK_cblas(routine, type, integer, symbol)                                               \
  void symbol(int, int, int, integer, integer, SCALARS(routine, type)::Alpha, IN_MATRIX(type), integer, \
              SCALARS(routine, type)::Beta, MATRIX(type), integer);
#define FAMILY_SYR2K_fortran(routine, type, integer, symbol)                                      \
  void symbol(const char*, const char*, const integer*, const integer*, const void*, const void*, \
              const integer*, const void*, const integer*, const void*, void*, const integer*);
#define FAMILY_SYR2K_cblas(routine, type, integer, symbol)                                              \
  void symbol(int, int, int, integer, integer, SCALARS(routine, type)::Alpha, IN_MATRIX(type), integer, \
              IN_MATRIX(type), integer, SCALARS(routine, type)::Beta, MATRIX(type), integer);
#define FAMILY_SYMM_fortran(routine, type, integer, symbol) \
  FAMILY_SYR2K_fortran(routine, type, integer, symbol)
#define FAMILY_SYMM_cblas(routine, type, integer, symbol)                                               \
  void symbol(int, int, int, integer, integer, SCALAR(type), IN_MATRIX(type), integer, IN_MATRIX(type), \
              integer, SCALAR(type), MATRIX(type), integer);
#define FAMILY_TRMM_fortran(routine, type, integer, symbol)                                       \
  void symbol(const char*, const char*, const char*, const char*, const integer*, const integer*, \
              const void*, const void*, const integer*, void*, const integer*);
#define FAMILY_TRMM_cblas(routine, type, integer, symbol)                                        \
  void symbol(int, int, int, int, int, integer, integer, SCALAR(type), IN_MATRIX(type), integer, \
              MATRIX(type), integer);

// Routines with vectors.
#define FAMILY_GEMV_fortran(type, integer, symbol)                                                   \
  void symbol(const char*, const integer*, const integer*, const void*, const void*, const integer*, \
              const void*, const integer*, const void*, void*, const integer*);
#define FAMILY_GEMV_cblas(type, integer, symbol)                                                            \
  void symbol(int, int, integer, integer, SCALAR(type), IN_MATRIX(type), integer, IN_MATRIX(type), integer, \
              SCALAR(type), MATRIX(type), integer);
#define FAMILY_SYMV_fortran(type, integer, symbol)                                                \
  void symbol(const char*, const integer*, const void*, const void*, const integer*, const void*, \
              const integer*, const void*, void*, const integer*);
#define FAMILY_SYMV_cblas(type, integer, symbol)                                                   \
  void symbol(int, int, integer, SCALAR(type), IN_MATRIX(type), integer, IN_MATRIX(type), integer, \
              SCALAR(type), MATRIX(type), integer);
#define FAMILY_GER_fortran(type, integer, symbol)                                                    \
  void symbol(const integer*, const integer*, const void*, const void*, const integer*, const void*, \
              const integer*, void*, const integer*);
#define FAMILY_GER_cblas(type, integer, symbol)                                                        \
  void symbol(int, integer, integer, SCALAR(type), IN_MATRIX(type), integer, IN_MATRIX(type), integer, \
              MATRIX(type), integer);
#define FAMILY_DOT_fortran(result, integer, symbol) \
  result symbol(const integer*, const void*, const integer*, const void*, const integer*);
#define FAMILY_DOT_cblas(result, integer, symbol) \
  result symbol(integer, const void*, integer, const void*, integer);

extern "C" {
#define KINTSUGI_BLAS_GEMV(routine, convention, type, integer, symbol) \
  FAMILY_GEMV_##convention(type, integer, symbol)
#define KINTSUGI_BLAS_SYMV(routine, convention, type, integer, symbol) \
  FAMILY_SYMV_##convention(type, integer, symbol)
#define KINTSUGI_BLAS_GER(routine, convention, type, integer, symbol) \
  FAMILY_GER_##convention(type, integer, symbol)
#define KINTSUGI_BLAS_DOT(routine, convention, type, integer, symbol) \
  FAMILY_DOT_##convention(kintsugi::test::types::type::Real, integer, symbol)
#define KINTSUGI_BLAS_DSDOT(routine, convention, type, integer, symbol) \
  FAMILY_DOT_##convention(double, integer, symbol)
#define KINTSUGI_BLAS_COMPLEX_DOT(routine, convention, type, integer, symbol) \
  FAMILY_DOT_##convention(std::complex<kintsugi::test::types::type::Real>, integer, symbol)
#define FAMILY_SDSDOT_fortran(integer, symbol) \
  float symbol(const integer*, const void*, const void*, const integer*, const void*, const integer*);
#define FAMILY_SDSDOT_cblas(integer, symbol) \
  float symbol(integer, float, const void*, integer, const void*, integer);
#define KINTSUGI_BLAS_SDSDOT(routine, convention, type, integer, symbol) \
  FAMILY_SDSDOT_##convention(integer, symbol)
#define KINTSUGI_BLAS_DOT_SUB(routine, convention, type, integer, symbol) \
  void symbol(integer, const void*, integer, const void*, integer, void*);
#define KINTSUGI_BLAS_GEMM(routine, convention, type, integer, symbol) \
  FAMILY_GEMM_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_GEMMT(routine, convention, type, integer, symbol) \
  FAMILY_GEMMT_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_GEMM_BATCH(routine, convention, type, integer, symbol) \
  FAMILY_GEMM_BATCH_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_GEMM_BATCH_STRIDED(routine, convention, type, integer, symbol) \
  FAMILY_GEMM_BATCH_STRIDED_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_SYRK(routine, convention, type, integer, symbol) \
  FAMILY_SYRK_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_SYR2K(routine, convention, type, integer, symbol) \
  FAMILY_SYR2K_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_SYMM(routine, convention, type, integer, symbol) \
  FAMILY_SYMM_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_TRMM(routine, convention, type, integer, symbol) \
  FAMILY_TRMM_##convention(routine, type, integer, symbol)
#include "drop_in/blas/symbols.def"
#undef KINTSUGI_BLAS_GEMM
#undef KINTSUGI_BLAS_GEMMT
#undef KINTSUGI_BLAS_GEMM_BATCH
#undef KINTSUGI_BLAS_GEMM_BATCH_STRIDED
#undef KINTSUGI_BLAS_SYRK
#undef KINTSUGI_BLAS_SYR2K
#undef KINTSUGI_BLAS_SYMM
#undef KINTSUGI_BLAS_TRMM
#undef KINTSUGI_BLAS_GEMV
#undef KINTSUGI_BLAS_SYMV
#undef KINTSUGI_BLAS_GER
#undef KINTSUGI_BLAS_DOT
#undef KINTSUGI_BLAS_DSDOT
#undef KINTSUGI_BLAS_SDSDOT
#undef KINTSUGI_BLAS_COMPLEX_DOT
#undef KINTSUGI_BLAS_DOT_SUB
}
