// Makes calls of the arguments of exported functions. A family of functions has a list of its arguments; the
// convention says how an argument is passed.
#pragma once

#include <cstdint>

#include "call.hpp"

namespace kintsugi::drop_in {

// clang-format off
enum class Argument : std::uint8_t {
  layout, side, uplo, op_a, op_b, diag, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb, stride_b,
  beta, c, type_c, ldc, stride_c, count, compute, algorithm
};
// clang-format on

template <Argument... arguments>
struct ArgumentList {
  static constexpr bool has(Argument sought) { return ((arguments == sought) || ...); }
  // Number of letters or enumerators, which precede the sizes; without `layout`.
  static constexpr int letters = ((arguments > Argument::layout && arguments < Argument::m) + ...);
};

// Arguments of families of functions, and their declarations: E is the type of enumerators, N of sizes and
// leading dimensions, L of strides, A of alpha, B of beta. A matrix that a routine works on in place is c.
// clang-format off
#define KINTSUGI_ARGUMENTS_Gemm op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc
#define KINTSUGI_PARAMETERS_Gemm(E, N, L, A, B)                                                              \
  E op_a, E op_b, N m, N n, N k, A alpha, const void *a, N lda, const void *b, N ldb, B beta, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Gemmt uplo, op_a, op_b, n, k, alpha, a, lda, b, ldb, beta, c, ldc
#define KINTSUGI_PARAMETERS_Gemmt(E, N, L, A, B)                                                             \
  E uplo, E op_a, E op_b, N n, N k, A alpha, const void *a, N lda, const void *b, N ldb, B beta, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Syrk uplo, op_a, n, k, alpha, a, lda, beta, c, ldc
#define KINTSUGI_PARAMETERS_Syrk(E, N, L, A, B)                                                              \
  E uplo, E op_a, N n, N k, A alpha, const void *a, N lda, B beta, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Syr2k uplo, op_a, n, k, alpha, a, lda, b, ldb, beta, c, ldc
#define KINTSUGI_PARAMETERS_Syr2k(E, N, L, A, B)                                                             \
  E uplo, E op_a, N n, N k, A alpha, const void *a, N lda, const void *b, N ldb, B beta, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Symm side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc
#define KINTSUGI_PARAMETERS_Symm(E, N, L, A, B)                                                              \
  E side, E uplo, N m, N n, A alpha, const void *a, N lda, const void *b, N ldb, B beta, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Trmm side, uplo, op_a, diag, m, n, alpha, a, lda, c, ldc
#define KINTSUGI_PARAMETERS_Trmm(E, N, L, A, B)                                                              \
  E side, E uplo, E op_a, E diag, N m, N n, A alpha, const void *a, N lda, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Gemv op_a, m, n, alpha, a, lda, b, ldb, beta, c, ldc
#define KINTSUGI_PARAMETERS_Gemv(E, N, L, A, B)                                                              \
  E op_a, N m, N n, A alpha, const void *a, N lda, const void *b, N ldb, B beta, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Symv uplo, n, alpha, a, lda, b, ldb, beta, c, ldc
#define KINTSUGI_PARAMETERS_Symv(E, N, L, A, B)                                                              \
  E uplo, N n, A alpha, const void *a, N lda, const void *b, N ldb, B beta, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Ger m, n, alpha, a, lda, b, ldb, c, ldc
#define KINTSUGI_PARAMETERS_Ger(E, N, L, A, B)                                                               \
  N m, N n, A alpha, const void *a, N lda, const void *b, N ldb, void *c, N ldc
#define KINTSUGI_ARGUMENTS_Dot n, a, lda, b, ldb
#define KINTSUGI_PARAMETERS_Dot(E, N, L, A, B) N n, const void *a, N lda, const void *b, N ldb
#define KINTSUGI_ARGUMENTS_Strided                                                                           \
  op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, count
#define KINTSUGI_PARAMETERS_Strided(E, N, L, A, B)                                                           \
  E op_a, E op_b, N m, N n, N k, A alpha, const void *a, N lda, L stride_a, const void *b, N ldb, L stride_b, \
      B beta, void *c, N ldc, L stride_c, N count
// clang-format on

namespace lists {
using enum Argument;
using Gemm = ArgumentList<KINTSUGI_ARGUMENTS_Gemm>;
using Gemmt = ArgumentList<KINTSUGI_ARGUMENTS_Gemmt>;
using Syrk = ArgumentList<KINTSUGI_ARGUMENTS_Syrk>;
using Syr2k = ArgumentList<KINTSUGI_ARGUMENTS_Syr2k>;
using Symm = ArgumentList<KINTSUGI_ARGUMENTS_Symm>;
using Trmm = ArgumentList<KINTSUGI_ARGUMENTS_Trmm>;
using Gemv = ArgumentList<KINTSUGI_ARGUMENTS_Gemv>;
using Symv = ArgumentList<KINTSUGI_ARGUMENTS_Symv>;
using Ger = ArgumentList<KINTSUGI_ARGUMENTS_Ger>;
using Dot = ArgumentList<KINTSUGI_ARGUMENTS_Dot>;
using Strided = ArgumentList<KINTSUGI_ARGUMENTS_Strided>;
}  // namespace lists

// Returns the enumerator at a position of its type's order; `invalid` for any other position.
template <class Enumerator>
constexpr Enumerator enumerator_at(int position) {
  const bool is_valid = position >= 0 && position < static_cast<int>(Enumerator::invalid);
  return is_valid ? static_cast<Enumerator>(position) : Enumerator::invalid;
}

template <class Convention, Argument argument, class Value>
[[gnu::always_inline]] inline void set_argument(Call& call, const Value& value) {
  using enum Argument;
  if constexpr (argument == layout) call.layout = Convention::layout(value);
  if constexpr (argument == side) call.side = Convention::side(value);
  if constexpr (argument == uplo) call.uplo = Convention::uplo(value);
  if constexpr (argument == op_a) call.op_a = Convention::op(value);
  if constexpr (argument == op_b) call.op_b = Convention::op(value);
  if constexpr (argument == diag) call.diag = Convention::diag(value);
  if constexpr (argument == m) call.m = Convention::number(value);
  if constexpr (argument == n) call.n = Convention::number(value);
  if constexpr (argument == k) call.k = Convention::number(value);
  if constexpr (argument == alpha) call.alpha = Convention::scalar(value);
  if constexpr (argument == a) call.a = value;
  if constexpr (argument == lda) call.lda = Convention::number(value);
  if constexpr (argument == stride_a) call.stride_a = Convention::number(value);
  if constexpr (argument == b) call.b = value;
  if constexpr (argument == ldb) call.ldb = Convention::number(value);
  if constexpr (argument == stride_b) call.stride_b = Convention::number(value);
  if constexpr (argument == beta) call.beta = Convention::scalar(value);
  if constexpr (argument == c) call.c = const_cast<void*>(static_cast<const void*>(value));
  if constexpr (argument == ldc) call.ldc = Convention::number(value);
  if constexpr (argument == stride_c) call.stride_c = Convention::number(value);
  if constexpr (argument == count) call.count = Convention::number(value);
}

// Returns the call of a routine with these arguments.
template <class Convention, Argument... arguments, class... Values>
[[gnu::always_inline]] inline Call call_of(ArgumentList<arguments...> list, Routine routine,
                                           kintsugi_type type, const Values&... values) {
  Call call;
  call.routine = routine;
  call.type = type;
  (set_argument<Convention, arguments>(call, values), ...);
  if (!list.has(Argument::m)) call.m = call.n;
  if (!list.has(Argument::k)) call.k = order_of_a(call);
  return call;
}

}  // namespace kintsugi::drop_in
