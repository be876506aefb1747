// Parts that all exported functions share: the types of their arguments, the spelling of their routines, the
// call behind them. Each makes a Call of its arguments and passes it on together with a way to forward them
// unchanged.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "blas/answer.hpp"

namespace kintsugi::blas {

// The types of s, d, c and z. Complex scalars and matrices of CBLAS are void pointers.
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

// Two routines' scalars are real whatever the type.
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

// The call with the scalars and matrices of a routine that has A, B and C.
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

// Compilers of Fortran pass the length of each string argument behind all arguments.
constexpr std::size_t length = 1;

// The same name in the next BLAS, with the caller's arguments; false where it is not there.
template <class... Arguments>
bool call_next(Symbol& symbol, Arguments... arguments) {
  auto* const next = symbol.next<void(Arguments...)>();
  if (next == nullptr) return false;
  next(arguments...);
  return true;
}

// The routine as xerbla spells it: upper case, six letters at least.
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

// An exported function that passes its arguments to `function` of the type and integer, with its symbol.
#define KINTSUGI_BLAS_DEFINE(routine, type_, symbol_, parameters, function, ...) \
  extern "C" __attribute__((visibility("default"))) void symbol_ parameters {    \
    static constexpr auto name = spelling(#type_ #routine);                      \
    static constinit Symbol symbol(#symbol_, name.text);                         \
    const Invocation invocation{symbol, __builtin_return_address(0)};            \
    function(invocation, __VA_ARGS__);                                           \
  }
