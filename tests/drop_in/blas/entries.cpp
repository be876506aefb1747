#include "tests/drop_in/blas/entries.hpp"

#include <type_traits>

// The C declarations of all names. Fortran's hidden lengths of strings are left out, as C callers do.
namespace {
struct s {
  using Scalar = float;
  using Element = float;
};
struct d {
  using Scalar = double;
  using Element = double;
};
struct c {
  using Scalar = const void*;
  using Element = void;
};
struct z {
  using Scalar = const void*;
  using Element = void;
};
}  // namespace

extern "C" {
#define DECLARE_fortran(type, integer, symbol)                                                       \
  void symbol(const char*, const char*, const integer*, const integer*, const integer*, const void*, \
              const void*, const integer*, const void*, const integer*, const void*, void*, const integer*);
#define DECLARE_cblas(type, integer, symbol)                                                         \
  void symbol(int, int, int, integer, integer, integer, type::Scalar, const type::Element*, integer, \
              const type::Element*, integer, type::Scalar, type::Element*, integer);
#define KINTSUGI_BLAS(routine, convention, type, integer, symbol) DECLARE_##convention(type, integer, symbol)
#include "drop_in/blas/symbols.def"
#undef KINTSUGI_BLAS
}

namespace kintsugi::test {

namespace {

int number_of(char op) { return op == 'N' ? 111 : op == 'T' ? 112 : op == 'C' ? 113 : op == 'R' ? 114 : 99; }

template <class Scalar>
Scalar scalar(const void* value) {
  if constexpr (std::is_pointer_v<Scalar>) {
    return value;
  } else {
    return *static_cast<const Scalar*>(value);
  }
}

template <class Int, class Function>
void call_fortran(Function* function, const GemmArguments& x) {
  const Int m = static_cast<Int>(x.m), n = static_cast<Int>(x.n), k = static_cast<Int>(x.k);
  const Int lda = static_cast<Int>(x.lda), ldb = static_cast<Int>(x.ldb), ldc = static_cast<Int>(x.ldc);
  function(&x.op_a, &x.op_b, &m, &n, &k, x.alpha, x.a, &lda, x.b, &ldb, x.beta, x.c, &ldc);
}

template <class Type, class Int, class Function>
void call_cblas(Function* function, const GemmArguments& x) {
  using Element = typename Type::Element;
  using Scalar = typename Type::Scalar;
  const auto number = [](std::int64_t of) { return static_cast<Int>(of); };
  const int layout = x.raw_layout != 0 ? x.raw_layout : x.row_major ? 101 : 102;
  function(layout, number_of(x.op_a), number_of(x.op_b), number(x.m), number(x.n), number(x.k),
           scalar<Scalar>(x.alpha), static_cast<const Element*>(x.a), number(x.lda),
           static_cast<const Element*>(x.b), number(x.ldb), scalar<Scalar>(x.beta),
           static_cast<Element*>(x.c), number(x.ldc));
}

constexpr bool is_cblas_fortran = false;
constexpr bool is_cblas_cblas = true;

#define CALL_fortran(type, integer, symbol) call_fortran<integer>(symbol, x)
#define CALL_cblas(type, integer, symbol) call_cblas<::type, integer>(symbol, x)
#define KINTSUGI_BLAS(routine, convention, type, integer, symbol) \
  {#symbol, #routine, #type[0], is_cblas_##convention,            \
   [](const GemmArguments& x) { CALL_##convention(type, integer, symbol); }},
constexpr Entry table[] = {
#include "drop_in/blas/symbols.def"
};
#undef KINTSUGI_BLAS

}  // namespace

std::span<const Entry> entries() { return table; }

}  // namespace kintsugi::test
