// Parts that all exported functions share. An exported function makes a Call of its arguments. It passes the
// Call to answer(), together with a callable that calls the next BLAS with the unchanged arguments.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "blas/answer.hpp"

namespace kintsugi::blas {

// Types of the arguments of the routines s..., d..., c... and z... CBLAS passes complex scalars and matrices
// as void pointers.
struct s {
  using Element = float;
  using Real = float;
  using CblasScalar = float;
  using CblasElement = float;
  static constexpr kintsugi_type type = KINTSUGI_F32;
};
struct d {
  using Element = double;
  using Real = double;
  using CblasScalar = double;
  using CblasElement = double;
  static constexpr kintsugi_type type = KINTSUGI_F64;
};
struct c {
  using Element = std::complex<float>;
  using Real = float;
  using CblasScalar = const void*;
  using CblasElement = void;
  static constexpr kintsugi_type type = KINTSUGI_C32;
};
struct z {
  using Element = std::complex<double>;
  using Real = double;
  using CblasScalar = const void*;
  using CblasElement = void;
  static constexpr kintsugi_type type = KINTSUGI_C64;
};

// The alpha of herk and the beta of herk and her2k are real for every type.
template <Routine routine, class Type>
using CblasAlpha =
    std::conditional_t<routine == Routine::herk, typename Type::Real, typename Type::CblasScalar>;
template <Routine routine, class Type>
using CblasBeta = std::conditional_t<routine == Routine::herk || routine == Routine::her2k,
                                     typename Type::Real, typename Type::CblasScalar>;

inline const void* scalar(const void* pointer) { return pointer; }
template <class T>
requires std::is_floating_point_v<T>
const void* scalar(const T& value) { return &value; }

// Returns `call` with the scalars and matrices set, for routines that have A, B and C.
inline Call with_matrices(Call call, const void* alpha, const void* a, std::int64_t lda, const void* b,
                          std::int64_t ldb, const void* beta, void* c, std::int64_t ldc) {
  call.alpha = alpha;
  call.a = a;
  call.lda = lda;
  call.b = b;
  call.ldb = ldb;
  call.beta = beta;
  call.c = c;
  call.ldc = ldc;
  return call;
}

// Length of a string argument of one letter. Fortran compilers append the length of each string argument to
// the argument list.
constexpr std::size_t length = 1;

// Calls the function of the same name in the next BLAS. Returns false if the next BLAS has no such function.
template <class... Arguments>
bool call_next(Symbol& symbol, Arguments... arguments) {
  auto* const next = symbol.next<void(Arguments...)>();
  if (next == nullptr) return false;
  next(arguments...);
  return true;
}

// Calls the next BLAS if the call is not intercepted, before arguments are read. Returns false if Kintsugi
// must answer the call: because the call is intercepted, or because there is no next BLAS.
template <class CallNextLibrary>
bool forward_unless_intercepted(const Invocation& invocation, const CallNextLibrary& call_next_library) {
  if (intercepts(invocation.return_address)) return false;
  const CallUnderWay under_way;
  return call_next_library();
}

// Name of a routine as xerbla spells it: upper case, padded to at least six characters.
struct Spelling {
  char text[20] = "      ";
};
template <std::size_t size>
constexpr Spelling spelling(const char (&name)[size]) {
  static_assert(size <= sizeof(Spelling::text));
  Spelling result;
  for (std::size_t i = 0; i + 1 < size; ++i) {
    const bool is_lower_case = name[i] >= 'a' && name[i] <= 'z';
    result.text[i] = static_cast<char>(is_lower_case ? name[i] - 'a' + 'A' : name[i]);
  }
  return result;
}

}  // namespace kintsugi::blas

// Defines the exported function `symbol_`, which passes its arguments to `function`.
#define KINTSUGI_BLAS_DEFINE(routine, type_, symbol_, parameters, function, ...) \
  extern "C" __attribute__((visibility("default"))) void symbol_ parameters {    \
    static constexpr auto name = spelling(#type_ #routine);                      \
    static constinit Symbol symbol(#symbol_, name.text);                         \
    const Invocation invocation{symbol, __builtin_return_address(0)};            \
    function(invocation, __VA_ARGS__);                                           \
  }
