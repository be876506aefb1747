// The exported names of gemm: every one makes a GemmCall of its arguments.
#include <complex>
#include <cstddef>
#include <type_traits>

#include "multiply.hpp"

#define KINTSUGI_BLAS_EXPORT extern "C" __attribute__((visibility("default")))

namespace kintsugi::blas {

namespace {

// The types of s, d, c and z. Complex scalars and matrices of CBLAS are void pointers.
struct s {
  using Element = float;
  using CblasScalar = float;
  using CblasElement = float;
  static constexpr kintsugi_type type = KINTSUGI_F32;
};
struct d {
  using Element = double;
  using CblasScalar = double;
  using CblasElement = double;
  static constexpr kintsugi_type type = KINTSUGI_F64;
};
struct c {
  using Element = std::complex<float>;
  using CblasScalar = const void*;
  using CblasElement = void;
  static constexpr kintsugi_type type = KINTSUGI_C32;
};
struct z {
  using Element = std::complex<double>;
  using CblasScalar = const void*;
  using CblasElement = void;
  static constexpr kintsugi_type type = KINTSUGI_C64;
};

// Compilers of Fortran pass the length of each string argument behind all arguments.
template <class Type, class Int>
using FortranGemm = void(const char*, const char*, const Int*, const Int*, const Int*,
                         const typename Type::Element*, const typename Type::Element*, const Int*,
                         const typename Type::Element*, const Int*, const typename Type::Element*,
                         typename Type::Element*, const Int*, std::size_t, std::size_t);

template <class Type, class Int>
using CblasGemm = void(int, int, int, Int, Int, Int, typename Type::CblasScalar,
                       const typename Type::CblasElement*, Int, const typename Type::CblasElement*, Int,
                       typename Type::CblasScalar, typename Type::CblasElement*, Int);

const void* scalar(const void* pointer) { return pointer; }
template <class T>
requires std::is_floating_point_v<T>
const void* scalar(const T& value) { return &value; }

template <class Function, class... Arguments>
bool call_next(Symbol& symbol, Arguments... arguments) {
  Function* const next = symbol.next<Function>();
  if (next == nullptr) return false;
  next(arguments...);
  return true;
}

template <class Type, class Int>
void fortran_gemm(Symbol& symbol, const char* op_a, const char* op_b, const Int* m, const Int* n,
                  const Int* k, const void* alpha, const void* a, const Int* lda, const void* b,
                  const Int* ldb, const void* beta, void* c, const Int* ldc) {
  using Element = typename Type::Element;
  const auto forward = [&] {
    return call_next<FortranGemm<Type, Int>>(
        symbol, op_a, op_b, m, n, k, static_cast<const Element*>(alpha), static_cast<const Element*>(a), lda,
        static_cast<const Element*>(b), ldb, static_cast<const Element*>(beta), static_cast<Element*>(c), ldc,
        std::size_t{1}, std::size_t{1});
  };
  if (!intercepts() && forward()) return;
  const GemmCall call{.type = Type::type,
                      .convention = Convention::fortran,
                      .op_a = op_of_letter(*op_a),
                      .op_b = op_of_letter(*op_b),
                      .m = *m,
                      .n = *n,
                      .k = *k,
                      .alpha = alpha,
                      .a = a,
                      .lda = *lda,
                      .b = b,
                      .ldb = *ldb,
                      .beta = beta,
                      .c = c,
                      .ldc = *ldc};
  multiply(symbol, call, Forward(forward));
}

template <class Type, class Int>
void cblas_gemm(Symbol& symbol, int layout, int op_a, int op_b, Int m, Int n, Int k,
                const typename Type::CblasScalar& alpha, const typename Type::CblasElement* a, Int lda,
                const typename Type::CblasElement* b, Int ldb, const typename Type::CblasScalar& beta,
                typename Type::CblasElement* c, Int ldc) {
  const auto forward = [&] {
    return call_next<CblasGemm<Type, Int>>(symbol, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta,
                                           c, ldc);
  };
  if (!intercepts() && forward()) return;
  const GemmCall call{.type = Type::type,
                      .convention = Convention::cblas,
                      .layout = layout_of_number(layout),
                      .op_a = op_of_number(op_a),
                      .op_b = op_of_number(op_b),
                      .m = m,
                      .n = n,
                      .k = k,
                      .alpha = scalar(alpha),
                      .a = a,
                      .lda = lda,
                      .b = b,
                      .ldb = ldb,
                      .beta = scalar(beta),
                      .c = c,
                      .ldc = ldc,
                      .raw_layout = layout,
                      .raw_op_a = op_a,
                      .raw_op_b = op_b};
  multiply(symbol, call, Forward(forward));
}

// The routine as xerbla spells it: six letters at least.
#define KINTSUGI_BLAS_SPELLING_gemm(type) spelling(#type "GEMM ")
#define KINTSUGI_BLAS_SPELLING_gemm3m(type) spelling(#type "GEMM3M")

template <std::size_t size>
struct Spelling {
  char text[size];
};
template <std::size_t size>
constexpr Spelling<size> spelling(const char (&name)[size]) {
  Spelling<size> result{};
  for (std::size_t i = 0; i < size; ++i) result.text[i] = name[i];
  result.text[0] = static_cast<char>(name[0] - 'a' + 'A');
  return result;
}

}  // namespace

#define KINTSUGI_BLAS_FORTRAN(routine, type_, integer, symbol_)                                             \
  KINTSUGI_BLAS_EXPORT void symbol_(const char* op_a, const char* op_b, const integer* m, const integer* n, \
                                    const integer* k, const void* alpha, const void* a, const integer* lda, \
                                    const void* b, const integer* ldb, const void* beta, void* c,           \
                                    const integer* ldc) {                                                   \
    static constexpr auto name = KINTSUGI_BLAS_SPELLING_##routine(type_);                                   \
    static constinit Symbol symbol(#symbol_, name.text);                                                    \
    fortran_gemm<blas::type_, integer>(symbol, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);   \
  }

#define KINTSUGI_BLAS_CBLAS(routine, type_, integer, symbol_)                                             \
  KINTSUGI_BLAS_EXPORT void symbol_(                                                                      \
      int layout, int op_a, int op_b, integer m, integer n, integer k, blas::type_::CblasScalar alpha,    \
      const blas::type_::CblasElement* a, integer lda, const blas::type_::CblasElement* b, integer ldb,   \
      blas::type_::CblasScalar beta, blas::type_::CblasElement* c, integer ldc) {                         \
    static constexpr auto name = KINTSUGI_BLAS_SPELLING_##routine(type_);                                 \
    static constinit Symbol symbol(#symbol_, name.text);                                                  \
    cblas_gemm<blas::type_, integer>(symbol, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, \
                                     ldc);                                                                \
  }

#define KINTSUGI_BLAS_fortran KINTSUGI_BLAS_FORTRAN
#define KINTSUGI_BLAS_cblas KINTSUGI_BLAS_CBLAS
#define KINTSUGI_BLAS(routine, convention, type, integer, symbol) \
  KINTSUGI_BLAS_##convention(routine, type, integer, symbol)
#include "symbols.def"
#undef KINTSUGI_BLAS

}  // namespace kintsugi::blas
