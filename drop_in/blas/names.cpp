// The exported names of routines of level 3, and functions for the names of routines with vectors, which
// jumps.cpp exports. Each makes a Call of its arguments and passes it to answer(), together with a callable
// that calls the next BLAS with the unchanged arguments. gemm_batch and gemm_batch_strided have the arguments
// of Intel's oneMKL, which BLIS and OpenBLAS have as well.
#include <cmath>
#include <complex>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "answer.hpp"
#include "core/settings.hpp"

namespace kintsugi::blas {

namespace {

// Types of the arguments of the routines s..., d..., c... and z... CBLAS passes complex scalars as pointers.
// The alpha of herk and the beta of herk and her2k are real for every type.
template <kintsugi_type number, class ElementType, class Real, class CblasScalar>
struct Types {
  using Element = ElementType;
  template <Routine routine>
  using Alpha = std::conditional_t<routine == Routine::herk, Real, CblasScalar>;
  template <Routine routine>
  using Beta = std::conditional_t<routine == Routine::herk || routine == Routine::her2k, Real, CblasScalar>;
  static constexpr kintsugi_type type = number;
};
using s = Types<KINTSUGI_F32, float, float, float>;
using d = Types<KINTSUGI_F64, double, double, double>;
using c = Types<KINTSUGI_C32, std::complex<float>, float, const void*>;
using z = Types<KINTSUGI_C64, std::complex<double>, double, const void*>;

// Calls the function of the same name in the next BLAS. Returns false if the next BLAS has no such function.
template <class... Arguments>
bool call_next(Symbol& symbol, Arguments... arguments) {
  auto* const next = symbol.next<void(Arguments...)>();
  if (next == nullptr) return false;
  next(arguments...);
  return true;
}

// The same for Fortran, whose compilers append the length of each string to the arguments, here 1.
template <std::size_t... letters, class... Arguments>
bool call_next_fortran(Symbol& symbol, std::index_sequence<letters...>, Arguments... arguments) {
  return call_next(symbol, arguments..., static_cast<std::size_t>(letters * 0 + 1)...);
}

// Calls the next BLAS if the call is not intercepted, before arguments are read. Returns false if Kintsugi
// must answer the call: because the call is intercepted, or because there is no next BLAS.
template <class CallNext>
bool forward_unless_intercepted(const Invocation& invocation, const CallNext& call_next_library) {
  if (intercepts(invocation.return_address)) return false;
  const CallUnderWay under_way;
  return call_next_library();
}

Batch strided_batch_of(const Call& product, const int* enumerators) {
  Batch batch{.layout = product.layout, .bad = first_bad_argument(product, enumerators)};
  const std::int64_t bytes = element_bytes(product.type);
  Call first = product;
  first.batch = BatchKind::single;
  first.stride_a = first.stride_b = first.stride_c = 0;
  first.count = 1;
  batch.add({.product = first,
             .count = product.count,
             .stride_a = product.stride_a * bytes,
             .stride_b = product.stride_b * bytes,
             .stride_c = product.stride_c * bytes});
  return batch;
}

// Answers a call whose arguments are those of the list. `op_of_y`: op_b of ger; other routines have their
// own.
template <class Convention, class List, Routine routine, kintsugi_type type, Op op_of_y, class... Arguments>
[[gnu::always_inline]] inline void answer_call(const Invocation& invocation, const Forward& forward,
                                               const Arguments&... arguments) {
  Call call = call_of<Convention>(List(), routine, type, arguments...);
  if constexpr (routine == Routine::ger) call.op_b = op_of_y;
  if constexpr (!List::has(Argument::count)) {
    answer(invocation, call, forward);
  } else {
    call.batch = BatchKind::strided;
    answer(invocation, strided_batch_of(call, invocation.enumerators), forward);
  }
}

template <class List, Routine routine, kintsugi_type type, Op op_of_y, class... Arguments>
void call_fortran(const Invocation& invocation, Arguments... arguments) {
  const auto call_next_library = [&] {
    return call_next_fortran(invocation.symbol, std::make_index_sequence<List::letters>(), arguments...);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  answer_call<Fortran, List, routine, type, op_of_y>(invocation, Forward(call_next_library), arguments...);
}

// CBLAS has the layout before the arguments of Fortran.
template <class List>
struct WithLayout;
template <Argument... arguments>
struct WithLayout<ArgumentList<arguments...>> {
  using Type = ArgumentList<Argument::layout, arguments...>;
};

// Copies the enumerators, the first arguments.
template <int count, class First, class... Rest>
[[gnu::always_inline]] inline void copy_enumerators(int* target, const First& first, const Rest&... rest) {
  *target = static_cast<int>(first);
  if constexpr (count > 1) copy_enumerators<count - 1>(target + 1, rest...);
}

template <class List, Routine routine, kintsugi_type type, Op op_of_y, class... Arguments>
void call_cblas(const Invocation& called, Arguments... arguments) {
  const auto call_next_library = [&] { return call_next(called.symbol, arguments...); };
  if (forward_unless_intercepted(called, call_next_library)) return;
  int enumerators[1 + List::letters];
  copy_enumerators<1 + List::letters>(enumerators, arguments...);
  const Invocation invocation{called, enumerators};
  answer_call<Cblas, typename WithLayout<List>::Type, routine, type, op_of_y>(
      invocation, Forward(call_next_library), arguments...);
}

// ------------------------------------------------------------------ dot

// Calls the next BLAS or answers a call of dot. `result` gets the result, which call_next_library() writes
// there.
template <class Convention, Routine routine, kintsugi_type type, Op op, class CallNext, class... Arguments>
void answer_dot(const Invocation& invocation, void* result, const CallNext& call_next_library,
                const Arguments&... arguments) {
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  Call call = call_of<Convention>(lists::Dot(), routine, type, arguments...);
  call.op_a = op;
  call.c = result;
  answer(invocation, call, Forward(call_next_library));
}

// Calls the next BLAS's function, and stores what it returns.
template <class Result, class... Arguments>
bool call_next_for(Result& result, Symbol& symbol, Arguments... arguments) {
  auto* const next = symbol.next<Result(Arguments...)>();
  if (next != nullptr) result = next(arguments...);
  return next != nullptr;
}

template <class Convention, class Result, Routine routine, kintsugi_type type, Op op, class... Arguments>
Result call_dot(const Invocation& invocation, Arguments... arguments) {
  Result result = {};
  const auto call_next_library = [&] { return call_next_for(result, invocation.symbol, arguments...); };
  answer_dot<Convention, routine, type, op>(invocation, &result, call_next_library, arguments...);
  return result;
}

// `added`: the number that the routine adds, as the convention passes it.
template <class Convention, class Added, class Int>
float call_sdsdot(const Invocation& invocation, Int n, Added added, const void* x, Int incx, const void* y,
                  Int incy) {
  float result = 0;
  const auto call_next_library = [&] {
    return call_next_for(result, invocation.symbol, n, added, x, incx, y, incy);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return result;
  Call call = call_of<Convention>(lists::Dot(), Routine::sdsdot, KINTSUGI_F32, n, x, incx, y, incy);
  call.beta = Convention::scalar(added);
  call.c = &result;
  answer(invocation, call, Forward(call_next_library));
  return result;
}

// The function writes its result to the first argument, as those of Intel's compilers and of f2c do.
template <kintsugi_type type, Op op, class... Arguments>
void call_dot_by_address(const Invocation& invocation, void* result, Arguments... arguments) {
  const auto call_next_library = [&] { return call_next(invocation.symbol, result, arguments...); };
  answer_dot<Fortran, Routine::dot, type, op>(invocation, result, call_next_library, arguments...);
}

template <kintsugi_type type, Op op, class Int>
void call_dot_sub(const Invocation& invocation, Int n, const void* x, Int incx, const void* y, Int incy,
                  void* result) {
  const auto call_next_library = [&] { return call_next(invocation.symbol, n, x, incx, y, incy, result); };
  answer_dot<Cblas, Routine::dot, type, op>(invocation, result, call_next_library, n, x, incx, y, incy);
}

// The op of the conjugated vector of gerc and dotc; Op::n for other routines.
constexpr Op op_of_vector(std::string_view routine) {
  return routine.starts_with("gerc") || routine.starts_with("dotc") ? Op::c : Op::n;
}

// ------------------------------------------------------------------ gemm_batch

// Numbers of the arguments that gemm_batch has and gemm lacks.
constexpr int group_count_argument = 14;
constexpr int group_size_argument = 15;

// Arrays of a call of gemm_batch. a, b and c have one pointer for each matrix of the batch; the other arrays
// have one element for each group.
template <class Enumerator, class Int, class Count>
struct Arrays {
  const Enumerator *op_a, *op_b;
  const Int *m, *n, *k;
  const void* alpha;
  const void* const* a;
  const Int* lda;
  const void* const* b;
  const Int* ldb;
  const void* beta;
  void* const* c;
  const Int* ldc;
  Count group_count;  // a pointer in Fortran
  const Int* group_size;
};

// Returns the groups of a batch, up to the first group with a wrong argument. `layout`: the layout as the
// caller of CBLAS gave it; nullptr: a call of Fortran.
template <class Type, class Enumerator, class Int, class Count>
Batch batch_of(const int* layout, const Arrays<Enumerator, Int, Count>& x) {
  using Element = typename Type::Element;
  using Convention = std::conditional_t<std::is_pointer_v<Count>, Fortran, Cblas>;
  const std::int64_t groups = Convention::number(x.group_count);
  const auto op_of = [](const Enumerator& enumerator) {
    if constexpr (std::is_pointer_v<Count>) {
      return Fortran::op(&enumerator);
    } else {
      return Cblas::op(enumerator);
    }
  };
  Batch batch;
  if (layout != nullptr) batch.layout = Cblas::layout(*layout);
  if (batch.layout == Layout::invalid) batch.bad = {1, "layout", *layout};
  if (batch.bad.number == 0 && groups < 0) batch.bad = {group_count_argument, nullptr, 0};
  std::int64_t first = 0;
  for (std::int64_t g = 0; g < groups && batch.bad.number == 0; ++g) {
    Group group{.product = product(Type::type, op_of(x.op_a[g]), op_of(x.op_b[g]), x.m[g], x.n[g], x.k[g],
                                   static_cast<const Element*>(x.alpha) + g, nullptr, x.lda[g], nullptr,
                                   x.ldb[g], static_cast<const Element*>(x.beta) + g, nullptr, x.ldc[g]),
                .count = x.group_size[g],
                .a = x.a + first,
                .b = x.b + first,
                .c = x.c + first};
    group.product.layout = batch.layout;
    const int enumerators[] = {layout != nullptr ? *layout : 0, x.op_a[g], x.op_b[g]};
    batch.bad = first_bad_argument(group.product, layout != nullptr ? enumerators : nullptr);
    if (batch.bad.number == 0 && group.count < 0) batch.bad = {group_size_argument, nullptr, 0};
    first += group.count;
    if (!batch.add(group)) break;
  }
  return batch;
}

template <class Type, class Int, class... Arguments>
void call_fortran_batch(const Invocation& invocation, Arguments... arguments) {
  const auto call_next_library = [&] {
    return call_next_fortran(invocation.symbol, std::make_index_sequence<2>(), arguments...);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  answer(invocation, batch_of<Type>(nullptr, Arrays<char, Int, const Int*>{arguments...}),
         Forward(call_next_library));
}

template <class Type, class Int, class... Arguments>
void call_cblas_batch(const Invocation& called, int layout, Arguments... arguments) {
  const auto call_next_library = [&] { return call_next(called.symbol, layout, arguments...); };
  if (forward_unless_intercepted(called, call_next_library)) return;
  answer(Invocation{called, &layout}, batch_of<Type>(&layout, Arrays<int, Int, Int>{arguments...}),
         Forward(call_next_library));
}

// ------------------------------------------------------------------ names

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

}  // namespace

// Defines the exported function `symbol_`, whose body calls `function` with an Invocation and the arguments.
#define DEFINE(routine, type_, symbol_, ...) \
  DEFINE_AS(__attribute__((visibility("default"))) void symbol_, routine, type_, symbol_, __VA_ARGS__)
#define DEFINE_fortran(...) FORTRAN(DEFINE, __VA_ARGS__)
#define DEFINE_cblas(...) CBLAS(DEFINE, __VA_ARGS__)

// Defines a function with that declaration for a name.
#define DEFINE_AS(declaration, routine, type_, symbol_, parameters, function, ...)   \
  extern "C" declaration parameters {                                                \
    static constexpr auto name = spelling(#type_ #routine);                          \
    static constinit Symbol symbol(#symbol_, name.text);                             \
    return function(Invocation{{symbol, __builtin_return_address(0)}}, __VA_ARGS__); \
  }
#define FORTRAN(define, list, kind, routine, type_, I, symbol_)                                   \
  define(routine, type_, symbol_,                                                                 \
         (KINTSUGI_PARAMETERS_##list(const char*, const I*, const I*, const void*, const void*)), \
         (call_fortran<lists::list, Routine::kind, blas::type_::type, op_of_vector(#routine)>),   \
         KINTSUGI_ARGUMENTS_##list)
#define CBLAS(define, list, kind, routine, type_, I, symbol_)                                         \
  define(routine, type_, symbol_,                                                                     \
         (int layout, KINTSUGI_PARAMETERS_##list(int, I, I, blas::type_::Alpha<Routine::kind>,        \
                                                 blas::type_::Beta<Routine::kind>)),                  \
         (call_cblas<lists::list, Routine::kind, blas::type_::type, op_of_vector(#routine)>), layout, \
         KINTSUGI_ARGUMENTS_##list)

#define BATCH_fortran(routine, type_, I, symbol_)                                                        \
  DEFINE(routine, type_, symbol_,                                                                        \
         (const char* op_a, const char* op_b, const I* m, const I* n, const I* k, const void* alpha,     \
          const void* const* a, const I* lda, const void* const* b, const I* ldb, const void* beta,      \
          void* const* c, const I* ldc, const I* group_count, const I* group_size),                      \
         (call_fortran_batch<blas::type_, I>), op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, \
         group_count, group_size)
#define BATCH_cblas(routine, type_, I, symbol_)                                                           \
  DEFINE(routine, type_, symbol_,                                                                         \
         (int layout, const int* op_a, const int* op_b, const I* m, const I* n, const I* k,               \
          const void* alpha, const void* const* a, const I* lda, const void* const* b, const I* ldb,      \
          const void* beta, void* const* c, const I* ldc, I group_count, const I* group_size),            \
         (call_cblas_batch<blas::type_, I>), layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, \
         ldc, group_count, group_size)

#define KINTSUGI_BLAS_GEMM(routine, convention, ...) DEFINE_##convention(Gemm, gemm, routine, __VA_ARGS__)
#define KINTSUGI_BLAS_GEMMT(routine, convention, ...) DEFINE_##convention(Gemmt, gemmt, routine, __VA_ARGS__)
#define KINTSUGI_BLAS_SYRK(routine, convention, ...) DEFINE_##convention(Syrk, routine, routine, __VA_ARGS__)
#define KINTSUGI_BLAS_SYR2K(routine, convention, ...) \
  DEFINE_##convention(Syr2k, routine, routine, __VA_ARGS__)
#define KINTSUGI_BLAS_SYMM(routine, convention, ...) DEFINE_##convention(Symm, routine, routine, __VA_ARGS__)
#define KINTSUGI_BLAS_TRMM(routine, convention, ...) DEFINE_##convention(Trmm, routine, routine, __VA_ARGS__)
#define KINTSUGI_BLAS_GEMM_BATCH(routine, convention, ...) BATCH_##convention(routine, __VA_ARGS__)
#define KINTSUGI_BLAS_GEMM_BATCH_STRIDED(routine, convention, ...) \
  DEFINE_##convention(Strided, gemm, routine, __VA_ARGS__)

// Routines with vectors. On x86-64 jumps.cpp exports their names, which jump to these functions where they
// are to be answered.
#ifdef __x86_64__
#define VECTORS(result, symbol_) __attribute__((visibility("hidden"), used)) result kintsugi_answer_##symbol_
#else
#define VECTORS(result, symbol_) __attribute__((visibility("default"))) result symbol_
#endif
#define DEFINE_VECTORS(routine, type_, symbol_, ...) \
  DEFINE_AS(VECTORS(void, symbol_), routine, type_, symbol_, __VA_ARGS__)
#define VECTORS_fortran(...) FORTRAN(DEFINE_VECTORS, __VA_ARGS__)
#define VECTORS_cblas(...) CBLAS(DEFINE_VECTORS, __VA_ARGS__)
#define KINTSUGI_BLAS_GEMV(routine, convention, ...) VECTORS_##convention(Gemv, gemv, routine, __VA_ARGS__)
#define KINTSUGI_BLAS_SYMV(routine, convention, ...) VECTORS_##convention(Symv, routine, routine, __VA_ARGS__)
#define KINTSUGI_BLAS_GER(routine, convention, ...) VECTORS_##convention(Ger, ger, routine, __VA_ARGS__)

#define NUMBER_fortran(I) const I*
#define NUMBER_cblas(I) I
#define CONVENTION_fortran Fortran
#define CONVENTION_cblas Cblas
#define DOT_PARAMETERS(N) KINTSUGI_PARAMETERS_Dot(, N, , , )
#define REAL_DOT(kind, argument_type, convention, routine, type_, I, symbol_)                               \
  DEFINE_AS(VECTORS(blas::type_::Element, symbol_), routine, type_, symbol_,                                \
            (DOT_PARAMETERS(NUMBER_##convention(I))),                                                       \
            (call_dot<CONVENTION_##convention, blas::type_::Element, Routine::kind, argument_type, Op::n>), \
            KINTSUGI_ARGUMENTS_Dot)
#define KINTSUGI_BLAS_DOT(routine, convention, type_, ...) \
  REAL_DOT(dot, blas::type_::type, convention, routine, type_, __VA_ARGS__)
#define KINTSUGI_BLAS_DSDOT(routine, convention, ...) \
  REAL_DOT(dsdot, KINTSUGI_F32, convention, routine, __VA_ARGS__)

#define ADDED_fortran const void*
#define ADDED_cblas float
#define KINTSUGI_BLAS_SDSDOT(routine, convention, type_, I, symbol_)                                         \
  DEFINE_AS(VECTORS(float, symbol_), routine, type_, symbol_,                                                \
            (NUMBER_##convention(I) n, ADDED_##convention added, const void* x, NUMBER_##convention(I) incx, \
             const void* y, NUMBER_##convention(I) incy),                                                    \
            call_sdsdot<CONVENTION_##convention>, n, added, x, incx, y, incy)
#define KINTSUGI_BLAS_DOT_SUB(routine, convention, type_, I, symbol_)                           \
  DEFINE_AS(VECTORS(void, symbol_), routine, type_, symbol_, (DOT_PARAMETERS(I), void* result), \
            (call_dot_sub<blas::type_::type, op_of_vector(#routine)>), KINTSUGI_ARGUMENTS_Dot, result)

// The two ways to return a complex number; jumps.cpp takes the one that the next BLAS has. Other processors
// than x86-64 have no such choice.
#ifdef __x86_64__
#define KINTSUGI_BLAS_COMPLEX_DOT(routine, convention, type_, I, symbol_)                                 \
  DEFINE_AS(                                                                                              \
      VECTORS(blas::type_::Element, symbol_), routine, type_, symbol_, (DOT_PARAMETERS(const I*)),        \
      (call_dot<Fortran, blas::type_::Element, Routine::dot, blas::type_::type, op_of_vector(#routine)>), \
      KINTSUGI_ARGUMENTS_Dot)                                                                             \
  DEFINE_AS(VECTORS(void, by_address_##symbol_), routine, type_, symbol_,                                 \
            (void* result, DOT_PARAMETERS(const I*)),                                                     \
            (call_dot_by_address<blas::type_::type, op_of_vector(#routine)>), result,                     \
            KINTSUGI_ARGUMENTS_Dot)
#endif
#include "blas/symbols.def"

// ------------------------------------------------------------------ ScaLAPACK

namespace {

constexpr std::int32_t scalapack_block_size = 32;
// At 512 inner indices the splits of both operands cost a small part of the product's time.
constexpr std::int32_t emulation_block_size = 512;

// True if the user asks for emulated products. Otherwise most calls are forwarded, and their results keep the
// bits that they have without this library.
bool asks_for_emulation() {
  const Settings& now = settings();
  if (now.is_malformed() || now.policy == Policy::native) return false;
  return now.policy != Policy::automatic || !now.accuracy.empty();
}

}  // namespace

// pilaenv_ returns the logical block size of ScaLAPACK. pdgemm multiplies that many inner indices at a time,
// whatever the blocks of its matrices are. ScaLAPACK's own function returns 32, too few for a fast emulation.
extern "C" __attribute__((visibility("default"))) std::int32_t pilaenv_(const std::int32_t* context,
                                                                        const char* precision,
                                                                        std::size_t length) {
  if (asks_for_emulation()) return emulation_block_size;
  static constinit Symbol symbol("pilaenv_", "PILAENV");
  auto* const next = symbol.next<std::int32_t(const std::int32_t*, const char*, std::size_t)>();
  return next != nullptr ? next(context, precision, length) : scalapack_block_size;
}

// ------------------------------------------------------------------ isamax

namespace {

// The integers are passed on in 64 bits, so that the caller learns the width of this library's integers,
// whatever those of the next BLAS are.
template <class Int>
Int call_isamax(Symbol& symbol, const Int* n, const float* x, const Int* incx) {
  const std::int64_t length = *n, increment = *incx;
  auto* const next = symbol.next<Int(const std::int64_t*, const float*, const std::int64_t*)>();
  if (next != nullptr) return next(&length, x, &increment);
  if (length < 1 || increment < 1) return 0;
  std::int64_t largest = 0;
  for (std::int64_t i = 1; i < length; ++i)
    if (std::fabs(x[i * increment]) > std::fabs(x[largest * increment])) largest = i;
  return static_cast<Int>(largest + 1);
}

}  // namespace

// FlexiBLAS and libblastrampoline look for this name in a backend, and call it with an n that is negative in
// 64 bits and 3 in 32 to learn the width of the integers.
#define DEFINE_ISAMAX(symbol_, Int)                                                           \
  extern "C" __attribute__((visibility("default"))) Int symbol_(const Int* n, const float* x, \
                                                                const Int* incx) {            \
    static constinit Symbol symbol(#symbol_, "ISAMAX");                                       \
    return call_isamax(symbol, n, x, incx);                                                   \
  }
DEFINE_ISAMAX(isamax_, std::int32_t)
DEFINE_ISAMAX(isamax_64_, std::int64_t)

}  // namespace kintsugi::blas
