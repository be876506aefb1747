// The exported names of gemm_batch and gemm_batch_strided, with the arguments of Intel's oneMKL, which BLIS
// and OpenBLAS have as well.
#include "names.hpp"

namespace kintsugi::blas {

namespace {

// Numbers of the arguments that gemm_batch and gemm_batch_strided have and gemm lacks.
constexpr int group_count_argument = 14;
constexpr int group_size_argument = 15;
constexpr int batch_size_argument = 17;

// Returns the number that an argument of gemm has in gemm_batch_strided. There a stride follows each of lda,
// ldb and ldc.
int argument_number_in_strided(int gemm_argument) {
  constexpr int ldb = 10, ldc = 13;  // numbers in gemm
  return gemm_argument == ldb ? ldb + 1 : gemm_argument == ldc ? ldc + 2 : gemm_argument;
}

// Arrays of a call of gemm_batch. a, b and c have one pointer for each matrix of the batch; the other arrays
// have one element for each group.
template <class Type, class Int>
struct Arrays {
  const Int *m, *n, *k;
  const void* alpha;
  const void* const* a;
  const Int* lda;
  const void* const* b;
  const Int* ldb;
  const void* beta;
  void* const* c;
  const Int* ldc;
  Int group_count;
  const Int* group_size;
};

// Returns the groups of a batch, up to the first group with a wrong argument. set_op_a(g, product) and
// set_op_b(g, product) set the operations of group g. `raw_layout`: the layout as the caller gave it, for
// messages.
template <class Type, class Int, class OpA, class OpB>
Batch batch_of(Convention convention, Layout layout, int raw_layout, const Arrays<Type, Int>& x,
               const OpA& set_op_a, const OpB& set_op_b) {
  using Element = typename Type::Element;
  Batch batch{.convention = convention, .layout = layout};
  if (layout == Layout::invalid) batch.bad = {1, "layout", raw_layout};
  if (batch.bad.number == 0 && x.group_count < 0) batch.bad = {group_count_argument, nullptr, 0};
  std::int64_t first = 0;
  for (Int g = 0; g < x.group_count && batch.bad.number == 0; ++g) {
    const std::int64_t count = x.group_size[g];
    Group group{.product = {.type = Type::type,
                            .convention = convention,
                            .layout = layout,
                            .m = x.m[g],
                            .n = x.n[g],
                            .k = x.k[g],
                            .alpha = static_cast<const Element*>(x.alpha) + g,
                            .lda = x.lda[g],
                            .ldb = x.ldb[g],
                            .beta = static_cast<const Element*>(x.beta) + g,
                            .ldc = x.ldc[g],
                            .raw = {.layout = raw_layout}},
                .count = count,
                .a = x.a + first,
                .b = x.b + first,
                .c = x.c + first};
    set_op_a(g, group.product);
    set_op_b(g, group.product);
    batch.bad = first_bad_argument(group.product);
    if (batch.bad.number == 0 && count < 0) batch.bad = {group_size_argument, nullptr, 0};
    first += count;
    if (!batch.add(group)) break;
  }
  return batch;
}

template <class Type, class Int>
void fortran_gemm_batch(const Invocation& invocation, const char* op_a, const char* op_b, const Int* m,
                        const Int* n, const Int* k, const void* alpha, const void* const* a, const Int* lda,
                        const void* const* b, const Int* ldb, const void* beta, void* const* c,
                        const Int* ldc, const Int* group_count, const Int* group_size) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, group_count,
                     group_size, length, length);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Arrays<Type, Int> arrays{m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, *group_count, group_size};
  answer(invocation,
         batch_of(
             Convention::fortran, Layout::column_major, 0, arrays,
             [op_a](Int g, Call& product) { product.op_a = op_of_letter(op_a[g]); },
             [op_b](Int g, Call& product) { product.op_b = op_of_letter(op_b[g]); }),
         Forward(call_next_library));
}

template <class Type, class Int>
void cblas_gemm_batch(const Invocation& invocation, int layout, const int* op_a, const int* op_b,
                      const Int* m, const Int* n, const Int* k, const void* alpha, const void* const* a,
                      const Int* lda, const void* const* b, const Int* ldb, const void* beta, void* const* c,
                      const Int* ldc, Int group_count, const Int* group_size) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, layout, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
                     group_count, group_size);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Arrays<Type, Int> arrays{m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, group_count, group_size};
  const auto set_op_a = [op_a](Int g, Call& product) {
    product.op_a = op_of_number(op_a[g]);
    product.raw.op_a = op_a[g];
  };
  const auto set_op_b = [op_b](Int g, Call& product) {
    product.op_b = op_of_number(op_b[g]);
    product.raw.op_b = op_b[g];
  };
  answer(invocation,
         batch_of(Convention::cblas, layout_of_number(layout), layout, arrays, set_op_a, set_op_b),
         Forward(call_next_library));
}

// ------------------------------------------------------------------ strided

struct Strides {
  std::int64_t a, b, c;
};

Batch strided_batch_of(const Call& product, std::int64_t element_bytes, const Strides& strides,
                       std::int64_t count) {
  Batch batch{.convention = product.convention, .layout = product.layout, .bad = first_bad_argument(product)};
  // The number of a bad enumerator is already that of the strided routine.
  if (batch.bad.enumerator == nullptr) batch.bad.number = argument_number_in_strided(batch.bad.number);
  if (batch.bad.number == 0 && count < 0) batch.bad = {batch_size_argument, nullptr, 0};
  batch.add({.product = product,
             .count = count,
             .stride_a = strides.a * element_bytes,
             .stride_b = strides.b * element_bytes,
             .stride_c = strides.c * element_bytes});
  return batch;
}

template <class Type, class Int>
void fortran_gemm_batch_strided(const Invocation& invocation, const char* op_a, const char* op_b,
                                const Int* m, const Int* n, const Int* k, const void* alpha, const void* a,
                                const Int* lda, const Int* stride_a, const void* b, const Int* ldb,
                                const Int* stride_b, const void* beta, void* c, const Int* ldc,
                                const Int* stride_c, const Int* count) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta,
                     c, ldc, stride_c, count, length, length);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call product = with_matrices({.type = Type::type,
                                      .convention = Convention::fortran,
                                      .op_a = op_of_letter(*op_a),
                                      .op_b = op_of_letter(*op_b),
                                      .m = *m,
                                      .n = *n,
                                      .k = *k},
                                     alpha, a, *lda, b, *ldb, beta, c, *ldc);
  const Strides strides{*stride_a, *stride_b, *stride_c};
  answer(invocation, strided_batch_of(product, sizeof(typename Type::Element), strides, *count),
         Forward(call_next_library));
}

template <class Type, class Int>
void cblas_gemm_batch_strided(const Invocation& invocation, int layout, int op_a, int op_b, Int m, Int n,
                              Int k, const typename Type::CblasScalar& alpha,
                              const typename Type::CblasElement* a, Int lda, Int stride_a,
                              const typename Type::CblasElement* b, Int ldb, Int stride_b,
                              const typename Type::CblasScalar& beta, typename Type::CblasElement* c, Int ldc,
                              Int stride_c, Int count) {
  const auto call_next_library = [&] {
    return call_next(invocation.symbol, layout, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb,
                     stride_b, beta, c, ldc, stride_c, count);
  };
  if (forward_unless_intercepted(invocation, call_next_library)) return;
  const Call product = with_matrices({.type = Type::type,
                                      .convention = Convention::cblas,
                                      .layout = layout_of_number(layout),
                                      .op_a = op_of_number(op_a),
                                      .op_b = op_of_number(op_b),
                                      .m = m,
                                      .n = n,
                                      .k = k,
                                      .raw = {.layout = layout, .op_a = op_a, .op_b = op_b}},
                                     scalar(alpha), a, lda, b, ldb, scalar(beta), c, ldc);
  const Strides strides{stride_a, stride_b, stride_c};
  answer(invocation, strided_batch_of(product, sizeof(typename Type::Element), strides, count),
         Forward(call_next_library));
}

}  // namespace

#define GEMM_BATCH_fortran(routine, type_, integer, symbol_)                                              \
  KINTSUGI_BLAS_DEFINE(routine, type_, symbol_,                                                           \
                       (const char* op_a, const char* op_b, const integer* m, const integer* n,           \
                        const integer* k, const void* alpha, const void* const* a, const integer* lda,    \
                        const void* const* b, const integer* ldb, const void* beta, void* const* c,       \
                        const integer* ldc, const integer* group_count, const integer* group_size),       \
                       (fortran_gemm_batch<blas::type_, integer>), op_a, op_b, m, n, k, alpha, a, lda, b, \
                       ldb, beta, c, ldc, group_count, group_size)

#define GEMM_BATCH_cblas(routine, type_, integer, symbol_)                                                   \
  KINTSUGI_BLAS_DEFINE(routine, type_, symbol_,                                                              \
                       (int layout, const int* op_a, const int* op_b, const integer* m, const integer* n,    \
                        const integer* k, const void* alpha, const void* const* a, const integer* lda,       \
                        const void* const* b, const integer* ldb, const void* beta, void* const* c,          \
                        const integer* ldc, integer group_count, const integer* group_size),                 \
                       (cblas_gemm_batch<blas::type_, integer>), layout, op_a, op_b, m, n, k, alpha, a, lda, \
                       b, ldb, beta, c, ldc, group_count, group_size)

#define GEMM_BATCH_STRIDED_fortran(routine, type_, integer, symbol_)                                       \
  KINTSUGI_BLAS_DEFINE(                                                                                    \
      routine, type_, symbol_,                                                                             \
      (const char* op_a, const char* op_b, const integer* m, const integer* n, const integer* k,           \
       const void* alpha, const void* a, const integer* lda, const integer* stride_a, const void* b,       \
       const integer* ldb, const integer* stride_b, const void* beta, void* c, const integer* ldc,         \
       const integer* stride_c, const integer* count),                                                     \
      (fortran_gemm_batch_strided<blas::type_, integer>), op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, \
      ldb, stride_b, beta, c, ldc, stride_c, count)

#define GEMM_BATCH_STRIDED_cblas(routine, type_, integer, symbol_)                                       \
  KINTSUGI_BLAS_DEFINE(                                                                                  \
      routine, type_, symbol_,                                                                           \
      (int layout, int op_a, int op_b, integer m, integer n, integer k, blas::type_::CblasScalar alpha,  \
       const blas::type_::CblasElement* a, integer lda, integer stride_a,                                \
       const blas::type_::CblasElement* b, integer ldb, integer stride_b, blas::type_::CblasScalar beta, \
       blas::type_::CblasElement* c, integer ldc, integer stride_c, integer count),                      \
      (cblas_gemm_batch_strided<blas::type_, integer>), layout, op_a, op_b, m, n, k, alpha, a, lda,      \
      stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, count)

#define KINTSUGI_BLAS_GEMM_BATCH(routine, convention, type, integer, symbol) \
  GEMM_BATCH_##convention(routine, type, integer, symbol)
#define KINTSUGI_BLAS_GEMM_BATCH_STRIDED(routine, convention, type, integer, symbol) \
  GEMM_BATCH_STRIDED_##convention(routine, type, integer, symbol)
#include "blas/symbols.def"

}  // namespace kintsugi::blas
