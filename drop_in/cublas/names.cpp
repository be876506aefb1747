// The exported names of products, of level-3 routines and of routines with vectors. Each makes a call of its
// arguments and passes it to answer(), together with a callable that calls the real cuBLAS with the unchanged
// arguments. Scalars and matrices are declared as void pointers, since the calling convention passes all
// pointers alike.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "answer.hpp"
#include "core/settings.hpp"

// Further families, as in core/arguments.hpp. Batches by pointers have arrays of pointers to the matrices.
// Some have the numbers of the matrices' types among the arguments; those with `compute` also that of the
// computation.
// clang-format off
#define KINTSUGI_ARGUMENTS_Batched op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count
#define KINTSUGI_PARAMETERS_Batched(E, N, L, A, B)                                                           \
  E op_a, E op_b, N m, N n, N k, A alpha, const void *const *a, N lda, const void *const *b, N ldb, B beta,  \
      void *const *c, N ldc, N count
#define KINTSUGI_ARGUMENTS_TypedGemm                                                                         \
  op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc
#define KINTSUGI_PARAMETERS_TypedGemm(E, N, L, A, B)                                                         \
  E op_a, E op_b, N m, N n, N k, A alpha, const void *a, E type_a, N lda, const void *b, E type_b, N ldb,    \
      B beta, void *c, E type_c, N ldc
#define KINTSUGI_ARGUMENTS_GemmEx KINTSUGI_ARGUMENTS_TypedGemm, compute, algorithm
#define KINTSUGI_PARAMETERS_GemmEx(E, N, L, A, B)                                                            \
  KINTSUGI_PARAMETERS_TypedGemm(E, N, L, A, B), E compute, E algorithm
#define KINTSUGI_ARGUMENTS_StridedEx                                                                         \
  op_a, op_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb, stride_b, beta, c, type_c, ldc,      \
      stride_c, count, compute, algorithm
#define KINTSUGI_PARAMETERS_StridedEx(E, N, L, A, B)                                                         \
  E op_a, E op_b, N m, N n, N k, A alpha, const void *a, E type_a, N lda, L stride_a, const void *b,         \
      E type_b, N ldb, L stride_b, B beta, void *c, E type_c, N ldc, L stride_c, N count, E compute,         \
      E algorithm
#define KINTSUGI_ARGUMENTS_BatchedEx                                                                         \
  op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, count, compute, algorithm
#define KINTSUGI_PARAMETERS_BatchedEx(E, N, L, A, B)                                                         \
  E op_a, E op_b, N m, N n, N k, A alpha, const void *const *a, E type_a, N lda, const void *const *b,       \
      E type_b, N ldb, B beta, void *const *c, E type_c, N ldc, N count, E compute, E algorithm
#define KINTSUGI_ARGUMENTS_TriangularProduct side, uplo, op_a, diag, m, n, alpha, a, lda, b, ldb, c, ldc
#define KINTSUGI_PARAMETERS_TriangularProduct(E, N, L, A, B)                                                 \
  E side, E uplo, E op_a, E diag, N m, N n, A alpha, const void *a, N lda, const void *b, N ldb, void *c, N ldc
#define KINTSUGI_ARGUMENTS_GemvBatched KINTSUGI_ARGUMENTS_Gemv, count
#define KINTSUGI_PARAMETERS_GemvBatched(E, N, L, A, B)                                                       \
  E op_a, N m, N n, A alpha, const void *const *a, N lda, const void *const *b, N ldb, B beta,               \
      void *const *c, N ldc, N count
#define KINTSUGI_ARGUMENTS_GemvStrided                                                                       \
  op_a, m, n, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, count
#define KINTSUGI_PARAMETERS_GemvStrided(E, N, L, A, B)                                                       \
  E op_a, N m, N n, A alpha, const void *a, N lda, L stride_a, const void *b, N ldb, L stride_b, B beta,     \
      void *c, N ldc, L stride_c, N count
#define KINTSUGI_ARGUMENTS_DotResult KINTSUGI_ARGUMENTS_Dot, c
#define KINTSUGI_PARAMETERS_DotResult(E, N, L, A, B) KINTSUGI_PARAMETERS_Dot(E, N, L, A, B), void *c
// clang-format on

namespace kintsugi::cublas {

namespace {

// ------------------------------------------------------------------ products

namespace lists {
using namespace drop_in::lists;
using Batched = ArgumentList<KINTSUGI_ARGUMENTS_Batched>;
using TypedGemm = ArgumentList<KINTSUGI_ARGUMENTS_TypedGemm>;
using GemmEx = ArgumentList<KINTSUGI_ARGUMENTS_GemmEx>;
using StridedEx = ArgumentList<KINTSUGI_ARGUMENTS_StridedEx>;
using BatchedEx = ArgumentList<KINTSUGI_ARGUMENTS_BatchedEx>;
using TriangularProduct = ArgumentList<KINTSUGI_ARGUMENTS_TriangularProduct>;
using GemvBatched = ArgumentList<KINTSUGI_ARGUMENTS_GemvBatched>;
using GemvStrided = ArgumentList<KINTSUGI_ARGUMENTS_GemvStrided>;
using DotResult = ArgumentList<KINTSUGI_ARGUMENTS_DotResult>;
}  // namespace lists

// Numbers among a call's arguments that are none of the product's.
struct TypeNumbers {
  MatrixTypes matrices;
  int compute, algorithm;

  template <Argument argument, class Value>
  void take(const Value& value) {
    if constexpr (argument == Argument::type_a) matrices.a = value;
    if constexpr (argument == Argument::type_b) matrices.b = value;
    if constexpr (argument == Argument::type_c) matrices.c = value;
    if constexpr (argument == Argument::compute) compute = value;
    if constexpr (argument == Argument::algorithm) algorithm = value;
  }
};

// Returns the call of a product. `type`: that of the function's name.
template <Argument... arguments, class... Values>
ProductCall product_of(ArgumentList<arguments...> list, kintsugi_type type, const Values&... values) {
  ProductCall call{call_of<Cublas>(list, Routine::gemm, type, values...)};
  TypeNumbers numbers{};
  (numbers.take<arguments>(values), ...);
  if (list.has(Argument::compute)) {
    set_type(call, type_of(numbers.matrices, numbers.compute, numbers.algorithm));
  } else if (list.has(Argument::type_a)) {
    set_type(call, type_of_all(numbers.matrices, type));
  }
  if (list.has(Argument::stride_a)) {
    make_strided(call, call.stride_a, call.stride_b, call.stride_c, call.count);
  } else if (list.has(Argument::count)) {
    make_batch_by_pointers(call, call.count);
  }
  return call;
}

template <class List, class... Arguments>
int call_product(const Invocation& invocation, kintsugi_type type, Handle handle, Arguments... arguments) {
  const auto forward = [&] { return call_real(invocation.symbol, handle, arguments...); };
  if (!intercepts(invocation.return_address)) return forward();
  const ProductCall call = product_of(List(), type, arguments...);
  return answer(invocation, ProductOrigin(handle, call.requests_emulation), call, Forward(forward));
}

template <class... Arguments>
int call_xt(const Invocation& invocation, kintsugi_type type, XtHandle handle, Arguments... arguments) {
  const auto forward = [&] { return call_real(invocation.symbol, handle, arguments...); };
  if (!intercepts(invocation.return_address)) return forward();
  return answer_xt(invocation, handle, call_of<Cublas>(lists::Gemm(), Routine::gemm, type, arguments...),
                   Forward(forward));
}

// ------------------------------------------------------------------ grouped batches

// Arguments of a grouped batch, without types. Shapes and scalars of the groups are in host memory, arrays of
// the pointers to their matrices in device memory.
template <class Int>
struct Groups {
  const int *op_a, *op_b;
  const Int *m, *n, *k;
  const void* alpha;
  const void* const* a;
  const Int* lda;
  const void* const* b;
  const Int* ldb;
  const void* beta;
  void* const* c;
  const Int* ldc;
  Int count;
  const Int* sizes;

  // True if an array is null, if there is no group, or if a group has a negative number of products.
  bool is_invalid_or_empty() const {
    for (const void* array :
         std::initializer_list<const void*>{op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, sizes})
      if (array == nullptr) return true;
    return count <= 0 || std::any_of(sizes, sizes + count, [](Int size) { return size < 0; });
  }

  // Returns the groups from `first` on. `products`: number of products in the groups before `first`.
  Groups from(std::size_t first, std::int64_t products, std::size_t scalar_bytes, Int new_count) const {
    const auto scalar_at = [&](const void* scalars) {
      return static_cast<const char*>(scalars) + first * scalar_bytes;
    };
    return {op_a + first,     op_b + first, m + first,   n + first,    k + first,
            scalar_at(alpha), a + products, lda + first, b + products, ldb + first,
            scalar_at(beta),  c + products, ldc + first, new_count,    sizes + first};
  }

  // Returns the first group as a batch by pointers.
  ProductCall first_call(const CallType& type) const {
    ProductCall call{product(type.type, Cublas::op(*op_a), Cublas::op(*op_b), *m, *n, *k, alpha, a, *lda, b,
                             *ldb, beta, const_cast<void**>(c), *ldc)};
    set_type(call, type);
    make_batch_by_pointers(call, *sizes);
    return call;
  }
};

// Answers the call. real(groups) calls the real function for all groups or for some.
template <class Int, class Real>
int answer_grouped(const Invocation& invocation, const CallType& type, Handle handle,
                   const Groups<Int>& groups, const Real& real) {
  if (!intercepts(invocation.return_address) || groups.is_invalid_or_empty()) return real(groups);
  // cuBLAS has no grouped batch of complex types.
  const CallType checked =
      type.is_supported() && is_complex(type.type) ? Unsupported{.field = Field::groups} : type;
  const std::size_t scalar_bytes =
      type.is_supported() && is_single(type.type) ? sizeof(float) : sizeof(double);
  const auto part = [&](std::size_t first, std::size_t count) {
    const std::int64_t before = std::accumulate(groups.sizes, groups.sizes + first, std::int64_t{0});
    return groups.from(first, before, scalar_bytes, static_cast<Int>(count));
  };
  std::vector<ProductCall> calls;
  try {
    for (std::size_t i = 0; i < static_cast<std::size_t>(groups.count); ++i)
      calls.push_back(part(i, 1).first_call(checked));
  } catch (const std::exception&) {  // No memory; nothing is enqueued yet.
    return real(groups);
  }
  const auto forward = [&](std::size_t first, std::size_t count) { return real(part(first, count)); };
  return answer_groups(invocation, handle, calls, ForwardGroups(forward));
}

template <class Int>
int gemm_grouped(const Invocation& invocation, kintsugi_type type, Handle handle, const Groups<Int>& groups) {
  const auto real = [&](const Groups<Int>& g) {
    return call_real(invocation.symbol, handle, g.op_a, g.op_b, g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b,
                     g.ldb, g.beta, g.c, g.ldc, g.count, g.sizes);
  };
  return answer_grouped(invocation, type, handle, groups, real);
}

template <class Int>
int gemm_grouped_ex(const Invocation& invocation, Handle handle, const Groups<Int>& groups,
                    const MatrixTypes& types, int compute) {
  const auto real = [&](const Groups<Int>& g) {
    return call_real(invocation.symbol, handle, g.op_a, g.op_b, g.m, g.n, g.k, g.alpha, g.a, types.a, g.lda,
                     g.b, types.b, g.ldb, g.beta, g.c, types.c, g.ldc, g.count, g.sizes, compute);
  };
  CallType type = type_of(types, compute, default_algorithm);
  // cuBLAS refuses to emulate groups.
  if (type.requests_emulation) type = Unsupported{.field = Field::compute_type, .values = {compute}};
  return answer_grouped(invocation, type, handle, groups, real);
}

// ------------------------------------------------------------------ level 3

// Returns an argument of a part of a call as cuBLAS takes it.
template <Argument argument>
auto argument_of(const Call& call) {
  // clang-format off
  using enum Argument;
  if constexpr (argument == side) return call.side == Side::left ? side_left : side_right;
  else if constexpr (argument == uplo) return call.uplo == Uplo::lower ? fill_lower : fill_upper;
  else if constexpr (argument == op_a) return static_cast<int>(call.op_a);
  else if constexpr (argument == diag) return call.diag == Diag::unit ? diagonal_unit : diagonal_not_unit;
  else if constexpr (argument == m) return call.m;
  else if constexpr (argument == n) return call.n;
  else if constexpr (argument == k) return call.k;
  else if constexpr (argument == alpha) return call.alpha;
  else if constexpr (argument == a) return call.a;
  else if constexpr (argument == lda) return call.lda;
  else if constexpr (argument == b) return call.b;
  else if constexpr (argument == ldb) return call.ldb;
  else if constexpr (argument == beta) return call.beta;
  else if constexpr (argument == c) return call.c;
  else return call.ldc;
  // clang-format on
}

// Parts use the caller's type of integers, since their sizes do not exceed the caller's sizes.
template <Argument... list, class... Arguments>
int call_level3(ArgumentList<list...> names, const Invocation& invocation, Routine routine,
                kintsugi_type type, Handle handle, Arguments... arguments) {
  const auto forward = [&] { return call_real(invocation.symbol, handle, arguments...); };
  if (!intercepts(invocation.return_address)) return forward();
  const auto forward_part = [&](const Call& part) {
    return call_real(invocation.symbol, handle, static_cast<Arguments>(argument_of<list>(part))...);
  };
  const Call call = call_of<Cublas>(names, routine, type, arguments...);
  return answer_level3(invocation, handle, call, Forward(forward), ForwardPart(forward_part));
}

// ------------------------------------------------------------------ routines with vectors

// `op_of_vector`: op_b of ger, op_a of dot.
template <class List, class... Arguments>
int call_vectors(const Invocation& invocation, Routine routine, kintsugi_type type, Op op_of_vector,
                 Handle handle, Arguments... arguments) {
  const auto forward = [&] { return call_real(invocation.symbol, handle, arguments...); };
  if (!intercepts(invocation.return_address) || !settings().answers_vectors(type)) return forward();
  Call call = call_of<Cublas>(List(), routine, type, arguments...);
  if (routine == Routine::ger) call.op_b = op_of_vector;
  if (routine == Routine::dot) call.op_a = op_of_vector;
  if (List::has(Argument::stride_a)) {
    make_strided(call, call.stride_a, call.stride_b, call.stride_c, call.count);
  } else if (List::has(Argument::count)) {
    make_batch_by_pointers(call, call.count);
  }
  return answer_vectors(invocation, handle, call, Forward(forward));
}

}  // namespace

// ------------------------------------------------------------------ names

// Defines an exported function, whose body is the call of `function` with an Invocation and arguments.
#define DEFINE(symbol_, parameters, ...)                                     \
  extern "C" __attribute__((visibility("default"))) int symbol_ parameters { \
    static constinit Symbol symbol(#symbol_);                                \
    const Invocation invocation{symbol, __builtin_return_address(0)};        \
    return __VA_ARGS__;                                                      \
  }

#define PARAMETERS(list, I) \
  (Handle handle, KINTSUGI_PARAMETERS_##list(int, I, long long, const void*, const void*))
#define PRODUCT(list, type_, I, symbol_) \
  DEFINE(symbol_, PARAMETERS(list, I),   \
         call_product<lists::list>(invocation, type_, handle, KINTSUGI_ARGUMENTS_##list))
#define LEVEL3(list, routine, type_, I, symbol_) \
  DEFINE(symbol_, PARAMETERS(list, I),           \
         call_level3(lists::list(), invocation, Routine::routine, type_, handle, KINTSUGI_ARGUMENTS_##list))

#define KINTSUGI_CUBLAS_GEMM(...) PRODUCT(Gemm, __VA_ARGS__)
#define KINTSUGI_CUBLAS_TYPED_GEMM(...) PRODUCT(TypedGemm, __VA_ARGS__)
#define KINTSUGI_CUBLAS_GEMM_EX(...) PRODUCT(GemmEx, KINTSUGI_F32, __VA_ARGS__)
#define KINTSUGI_CUBLAS_STRIDED(...) PRODUCT(Strided, __VA_ARGS__)
#define KINTSUGI_CUBLAS_STRIDED_EX(...) PRODUCT(StridedEx, KINTSUGI_F32, __VA_ARGS__)
#define KINTSUGI_CUBLAS_BATCHED(...) PRODUCT(Batched, __VA_ARGS__)
#define KINTSUGI_CUBLAS_BATCHED_EX(...) PRODUCT(BatchedEx, KINTSUGI_F32, __VA_ARGS__)
#define KINTSUGI_CUBLAS_UPDATE(type_, I, routine, symbol_) LEVEL3(Syrk, routine, type_, I, symbol_)
#define KINTSUGI_CUBLAS_UPDATE_WITH_B(type_, I, routine, symbol_) LEVEL3(Syr2k, routine, type_, I, symbol_)
#define KINTSUGI_CUBLAS_TRIANGULAR(type_, I, symbol_) LEVEL3(TriangularProduct, trmm, type_, I, symbol_)
#define KINTSUGI_CUBLAS_SYMMETRIC(type_, I, routine, symbol_) LEVEL3(Symm, routine, type_, I, symbol_)
#define KINTSUGI_CUBLAS_SOLVE(type_, I, symbol_) LEVEL3(Trmm, trsm, type_, I, symbol_)

#define VECTORS(list, routine, op, type_, I, symbol_)                                   \
  DEFINE(symbol_, PARAMETERS(list, I),                                                  \
         call_vectors<lists::list>(invocation, Routine::routine, type_, Op::op, handle, \
                                   KINTSUGI_ARGUMENTS_##list))
#define KINTSUGI_CUBLAS_GEMV(...) VECTORS(Gemv, gemv, n, __VA_ARGS__)
#define KINTSUGI_CUBLAS_GEMV_BATCHED(...) VECTORS(GemvBatched, gemv, n, __VA_ARGS__)
#define KINTSUGI_CUBLAS_GEMV_STRIDED(...) VECTORS(GemvStrided, gemv, n, __VA_ARGS__)
#define KINTSUGI_CUBLAS_SYMV(type_, I, routine, symbol_) VECTORS(Symv, routine, n, type_, I, symbol_)
#define KINTSUGI_CUBLAS_GER(type_, I, op, symbol_) VECTORS(Ger, ger, op, type_, I, symbol_)
#define KINTSUGI_CUBLAS_DOT(type_, I, op, symbol_) VECTORS(DotResult, dot, op, type_, I, symbol_)

#define KINTSUGI_CUBLAS_GROUPED(type_, I, symbol_)                                                   \
  DEFINE(symbol_,                                                                                    \
         (Handle handle, const int* op_a, const int* op_b, const I* m, const I* n, const I* k,       \
          const void* alpha, const void* const* a, const I* lda, const void* const* b, const I* ldb, \
          const void* beta, void* const* c, const I* ldc, I count, const I* sizes),                  \
         gemm_grouped<I>(invocation, type_, handle,                                                  \
                         {op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes}))

#define KINTSUGI_CUBLAS_GROUPED_EX(I, symbol_)                                                           \
  DEFINE(symbol_,                                                                                        \
         (Handle handle, const int* op_a, const int* op_b, const I* m, const I* n, const I* k,           \
          const void* alpha, const void* const* a, int type_a, const I* lda, const void* const* b,       \
          int type_b, const I* ldb, const void* beta, void* const* c, int type_c, const I* ldc, I count, \
          const I* sizes, int compute),                                                                  \
         gemm_grouped_ex<I>(invocation, handle,                                                          \
                            {op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes},    \
                            {type_a, type_b, type_c}, compute))

#define KINTSUGI_CUBLAS_XT(type_, symbol_)                                                                   \
  DEFINE(symbol_,                                                                                            \
         (XtHandle handle, KINTSUGI_PARAMETERS_Gemm(int, std::size_t, long long, const void*, const void*)), \
         call_xt(invocation, type_, handle, KINTSUGI_ARGUMENTS_Gemm))

#include "cublas/symbols.def"

DEFINE(cublasXtDeviceSelect, (XtHandle handle, int count, int* devices),
       select_xt_devices(invocation, handle, count, devices))
DEFINE(cublasXtDestroy, (XtHandle handle), destroy_xt(invocation, handle))
// Called by programs that were compiled with the compiler pass, before and after a call of cuBLAS.
extern "C" __attribute__((visibility("default"))) void kintsugi_cublas_site_begin(const void* record) {
  announced_site = record;
}
extern "C" __attribute__((visibility("default"))) void kintsugi_cublas_site_end() {
  announced_site = nullptr;
}

}  // namespace kintsugi::cublas
