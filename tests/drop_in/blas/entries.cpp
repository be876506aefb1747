#include "tests/drop_in/blas/entries.hpp"

#include <string>

#include "tests/drop_in/blas/declarations.hpp"

namespace kintsugi::test {

namespace {

int number_of_op(char op) {
  return op == 'N' ? 111 : op == 'T' ? 112 : op == 'C' ? 113 : op == 'R' ? 114 : 99;
}
int number_of_uplo(char uplo) { return uplo == 'U' ? 121 : uplo == 'L' ? 122 : 99; }
int number_of_diag(char diag) { return diag == 'N' ? 131 : diag == 'U' ? 132 : 99; }
int number_of_side(char side) { return side == 'L' ? 141 : side == 'R' ? 142 : 99; }
int number_of_layout(int raw, bool row_major) { return raw != 0 ? raw : row_major ? 101 : 102; }

// An argument as the C declaration has it: scalars by value where they are real, else by address.
template <class Scalar>
Scalar scalar(const void* value) {
  if constexpr (std::is_pointer_v<Scalar>) {
    return value;
  } else {
    return *static_cast<const Scalar*>(value);
  }
}

// The arguments in the caller's type of integers, as Fortran's addresses and as CBLAS's values.
template <class Int>
struct Integers {
  Int m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count;

  explicit Integers(const Arguments& x)
      : m(of(x.m)), n(of(x.n)), k(of(x.k)), lda(of(x.lda)), ldb(of(x.ldb)), ldc(of(x.ldc)),
        stride_a(of(x.stride_a)), stride_b(of(x.stride_b)), stride_c(of(x.stride_c)), count(of(x.count)) {}
  static Int of(std::int64_t number) { return static_cast<Int>(number); }
};

// Arguments of both conventions of a family, by the names that the macros below use.
template <class Type, class Int>
struct Cblas : Integers<Int> {
  using Element = typename Type::Element;
  int layout, side, uplo, op_a, op_b, diag;
  const Element *a, *b;
  Element* c;

  explicit Cblas(const Arguments& x)
      : Integers<Int>(x), layout(number_of_layout(x.raw_layout, x.row_major)), side(number_of_side(x.side)),
        uplo(number_of_uplo(x.uplo)), op_a(number_of_op(x.op_a)), op_b(number_of_op(x.op_b)),
        diag(number_of_diag(x.diag)), a(static_cast<const Element*>(x.a)),
        b(static_cast<const Element*>(x.b)), c(static_cast<Element*>(x.c)) {}
};

// The arrays of a batch.
template <class Int>
struct BatchArrays {
  std::string letters_a, letters_b;
  std::vector<int> numbers_a, numbers_b;
  std::vector<Int> m, n, k, lda, ldb, ldc, sizes;
  Int count;
  int layout;

  explicit BatchArrays(const BatchArguments& x)
      : count(static_cast<Int>(x.group_count)), layout(number_of_layout(x.raw_layout, x.row_major)) {
    for (const Arguments& group : x.groups) {
      const Integers<Int> of(group);
      letters_a += group.op_a;
      letters_b += group.op_b;
      numbers_a.push_back(number_of_op(group.op_a));
      numbers_b.push_back(number_of_op(group.op_b));
      m.push_back(of.m), n.push_back(of.n), k.push_back(of.k);
      lda.push_back(of.lda), ldb.push_back(of.ldb), ldc.push_back(of.ldc), sizes.push_back(of.count);
    }
  }
};

constexpr bool is_cblas_fortran = false;
constexpr bool is_cblas_cblas = true;

#define CALL_GEMM_fortran(routine, type, f) \
  f(&x.op_a, &x.op_b, &i.m, &i.n, &i.k, x.alpha, x.a, &i.lda, x.b, &i.ldb, x.beta, x.c, &i.ldc)
#define CALL_GEMM_cblas(routine, type, f)                                                           \
  f(i.layout, i.op_a, i.op_b, i.m, i.n, i.k, scalar<SCALAR(type)>(x.alpha), i.a, i.lda, i.b, i.ldb, \
    scalar<SCALAR(type)>(x.beta), i.c, i.ldc)
#define CALL_GEMMT_fortran(routine, type, f) \
  f(&x.uplo, &x.op_a, &x.op_b, &i.n, &i.k, x.alpha, x.a, &i.lda, x.b, &i.ldb, x.beta, x.c, &i.ldc)
#define CALL_GEMMT_cblas(routine, type, f)                                                             \
  f(i.layout, i.uplo, i.op_a, i.op_b, i.n, i.k, scalar<SCALAR(type)>(x.alpha), i.a, i.lda, i.b, i.ldb, \
    scalar<SCALAR(type)>(x.beta), i.c, i.ldc)
#define CALL_GEMM_BATCH_STRIDED_fortran(routine, type, f)                                                    \
  f(&x.op_a, &x.op_b, &i.m, &i.n, &i.k, x.alpha, x.a, &i.lda, &i.stride_a, x.b, &i.ldb, &i.stride_b, x.beta, \
    x.c, &i.ldc, &i.stride_c, &i.count)
#define CALL_GEMM_BATCH_STRIDED_cblas(routine, type, f)                                                  \
  f(i.layout, i.op_a, i.op_b, i.m, i.n, i.k, scalar<SCALAR(type)>(x.alpha), i.a, i.lda, i.stride_a, i.b, \
    i.ldb, i.stride_b, scalar<SCALAR(type)>(x.beta), i.c, i.ldc, i.stride_c, i.count)
#define CALL_SYRK_fortran(routine, type, f) \
  f(&x.uplo, &x.op_a, &i.n, &i.k, x.alpha, x.a, &i.lda, x.beta, x.c, &i.ldc)
#define CALL_SYRK_cblas(routine, type, f)                                                           \
  f(i.layout, i.uplo, i.op_a, i.n, i.k, scalar<SCALARS(routine, type)::Alpha>(x.alpha), i.a, i.lda, \
    scalar<SCALARS(routine, type)::Beta>(x.beta), i.c, i.ldc)
#define CALL_SYR2K_fortran(routine, type, f) \
  f(&x.uplo, &x.op_a, &i.n, &i.k, x.alpha, x.a, &i.lda, x.b, &i.ldb, x.beta, x.c, &i.ldc)
#define CALL_SYR2K_cblas(routine, type, f)                                                               \
  f(i.layout, i.uplo, i.op_a, i.n, i.k, scalar<SCALARS(routine, type)::Alpha>(x.alpha), i.a, i.lda, i.b, \
    i.ldb, scalar<SCALARS(routine, type)::Beta>(x.beta), i.c, i.ldc)
#define CALL_SYMM_fortran(routine, type, f) \
  f(&x.side, &x.uplo, &i.m, &i.n, x.alpha, x.a, &i.lda, x.b, &i.ldb, x.beta, x.c, &i.ldc)
#define CALL_SYMM_cblas(routine, type, f)                                                      \
  f(i.layout, i.side, i.uplo, i.m, i.n, scalar<SCALAR(type)>(x.alpha), i.a, i.lda, i.b, i.ldb, \
    scalar<SCALAR(type)>(x.beta), i.c, i.ldc)
#define CALL_TRMM_fortran(routine, type, f) \
  f(&x.side, &x.uplo, &x.op_a, &x.diag, &i.m, &i.n, x.alpha, x.a, &i.lda, x.c, &i.ldc)
#define CALL_TRMM_cblas(routine, type, f) \
  f(i.layout, i.side, i.uplo, i.op_a, i.diag, i.m, i.n, scalar<SCALAR(type)>(x.alpha), i.a, i.lda, i.c, i.ldc)
#define CALL_GEMM_BATCH_fortran(f)                                                                   \
  f(i.letters_a.data(), i.letters_b.data(), i.m.data(), i.n.data(), i.k.data(), x.alpha, x.a.data(), \
    i.lda.data(), x.b.data(), i.ldb.data(), x.beta, x.c.data(), i.ldc.data(), &i.count, i.sizes.data())
#define CALL_GEMM_BATCH_cblas(f)                                                                   \
  f(i.layout, i.numbers_a.data(), i.numbers_b.data(), i.m.data(), i.n.data(), i.k.data(), x.alpha, \
    x.a.data(), i.lda.data(), x.b.data(), i.ldb.data(), x.beta, x.c.data(), i.ldc.data(), i.count, \
    i.sizes.data())

#define ENTRY(family, routine, convention, type, integer, symbol) \
  {#symbol,                                                       \
   #routine,                                                      \
   #type[0],                                                      \
   is_cblas_##convention,                                         \
   [](const Arguments& x) {                                       \
     const Cblas<types::type, integer> i(x);                      \
     CALL_##family##_##convention(routine, type, symbol);         \
   },                                                             \
   nullptr},
#define KINTSUGI_BLAS_GEMM(...) ENTRY(GEMM, __VA_ARGS__)
#define KINTSUGI_BLAS_GEMMT(...) ENTRY(GEMMT, __VA_ARGS__)
#define KINTSUGI_BLAS_GEMM_BATCH_STRIDED(...) ENTRY(GEMM_BATCH_STRIDED, __VA_ARGS__)
#define KINTSUGI_BLAS_SYRK(...) ENTRY(SYRK, __VA_ARGS__)
#define KINTSUGI_BLAS_SYR2K(...) ENTRY(SYR2K, __VA_ARGS__)
#define KINTSUGI_BLAS_SYMM(...) ENTRY(SYMM, __VA_ARGS__)
#define KINTSUGI_BLAS_TRMM(...) ENTRY(TRMM, __VA_ARGS__)
#define KINTSUGI_BLAS_GEMM_BATCH(routine, convention, type, integer, symbol)                  \
  {#symbol, #routine, #type[0], is_cblas_##convention, nullptr, [](const BatchArguments& x) { \
     const BatchArrays<integer> i(x);                                                         \
     CALL_GEMM_BATCH_##convention(symbol);                                                    \
   }},
constexpr Entry table[] = {
#include "drop_in/blas/symbols.def"
};
#undef KINTSUGI_BLAS_GEMM
#undef KINTSUGI_BLAS_GEMMT
#undef KINTSUGI_BLAS_GEMM_BATCH_STRIDED
#undef KINTSUGI_BLAS_SYRK
#undef KINTSUGI_BLAS_SYR2K
#undef KINTSUGI_BLAS_SYMM
#undef KINTSUGI_BLAS_TRMM
#undef KINTSUGI_BLAS_GEMM_BATCH

#define CALL_GEMV_fortran(routine, type, f) \
  f(&x.op_a, &i.m, &i.n, x.alpha, x.a, &i.lda, x.b, &i.ldb, x.beta, x.c, &i.ldc)
#define CALL_GEMV_cblas(routine, type, f)                                              \
  f(i.layout, i.op_a, i.m, i.n, scalar<SCALAR(type)>(x.alpha), i.a, i.lda, i.b, i.ldb, \
    scalar<SCALAR(type)>(x.beta), i.c, i.ldc)
#define CALL_SYMV_fortran(routine, type, f) \
  f(&x.uplo, &i.n, x.alpha, x.a, &i.lda, x.b, &i.ldb, x.beta, x.c, &i.ldc)
#define CALL_SYMV_cblas(routine, type, f)                                         \
  f(i.layout, i.uplo, i.n, scalar<SCALAR(type)>(x.alpha), i.a, i.lda, i.b, i.ldb, \
    scalar<SCALAR(type)>(x.beta), i.c, i.ldc)
#define CALL_GER_fortran(routine, type, f) f(&i.m, &i.n, x.alpha, x.a, &i.lda, x.b, &i.ldb, x.c, &i.ldc)
#define CALL_GER_cblas(routine, type, f) \
  f(i.layout, i.m, i.n, scalar<SCALAR(type)>(x.alpha), i.a, i.lda, i.b, i.ldb, i.c, i.ldc)
#define CALL_DOT_fortran(routine, type, f) store(x.c, f(&i.n, x.a, &i.lda, x.b, &i.ldb))
#define CALL_DOT_cblas(routine, type, f) store(x.c, f(i.n, x.a, i.lda, x.b, i.ldb))
#define CALL_SDSDOT_fortran(routine, type, f) store(x.c, f(&i.n, x.beta, x.a, &i.lda, x.b, &i.ldb))
#define CALL_SDSDOT_cblas(routine, type, f) store(x.c, f(i.n, scalar<float>(x.beta), x.a, i.lda, x.b, i.ldb))
#define CALL_DOT_SUB_cblas(routine, type, f) f(i.n, x.a, i.lda, x.b, i.ldb, x.c)
#define KINTSUGI_BLAS_GEMV(...) ENTRY(GEMV, __VA_ARGS__)
#define KINTSUGI_BLAS_SYMV(...) ENTRY(SYMV, __VA_ARGS__)
#define KINTSUGI_BLAS_GER(...) ENTRY(GER, __VA_ARGS__)
#define KINTSUGI_BLAS_DOT(...) ENTRY(DOT, __VA_ARGS__)
#define KINTSUGI_BLAS_DSDOT(...) ENTRY(DOT, __VA_ARGS__)
#define KINTSUGI_BLAS_SDSDOT(...) ENTRY(SDSDOT, __VA_ARGS__)
#define KINTSUGI_BLAS_COMPLEX_DOT(...) ENTRY(DOT, __VA_ARGS__)
#define KINTSUGI_BLAS_DOT_SUB(...) ENTRY(DOT_SUB, __VA_ARGS__)

template <class Result>
void store(void* target, Result result) {
  *static_cast<Result*>(target) = result;
}

constexpr Entry vector_table[] = {
#include "drop_in/blas/symbols.def"
};

}  // namespace

std::span<const Entry> entries() { return table; }
std::span<const Entry> vector_entries() { return vector_table; }

}  // namespace kintsugi::test
