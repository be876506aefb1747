// The exported names of grouped batches: groups of products whose matrices are given by pointers. Shapes and
// scalars of the groups are in host memory, arrays of the pointers to their matrices in device memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <numeric>
#include <vector>

#include "common/accuracy.hpp"
#include "cublas/groups.hpp"
#include "names.hpp"

namespace kintsugi::cublas {

namespace {

// Arguments of a grouped batch, without types.
template <class Int>
struct Groups {
  const int* op_a;
  const int* op_b;
  const Int* m;
  const Int* n;
  const Int* k;
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
         {static_cast<const void*>(op_a), static_cast<const void*>(op_b), static_cast<const void*>(m),
          static_cast<const void*>(n), static_cast<const void*>(k), alpha, static_cast<const void*>(a),
          static_cast<const void*>(lda), static_cast<const void*>(b), static_cast<const void*>(ldb), beta,
          static_cast<const void*>(c), static_cast<const void*>(ldc), static_cast<const void*>(sizes)})
      if (array == nullptr) return true;
    return count <= 0 || std::any_of(sizes, sizes + count, [](Int size) { return size < 0; });
  }

  // Returns the groups from `first` on. `products`: number of products in the groups before `first`.
  Groups from(std::size_t first, std::int64_t products, std::size_t scalar_bytes, Int new_count) const {
    const auto scalar_at = [&](const void* scalars) {
      return static_cast<const char*>(scalars) + first * scalar_bytes;
    };
    return {.op_a = op_a + first,
            .op_b = op_b + first,
            .m = m + first,
            .n = n + first,
            .k = k + first,
            .alpha = scalar_at(alpha),
            .a = a + products,
            .lda = lda + first,
            .b = b + products,
            .ldb = ldb + first,
            .beta = scalar_at(beta),
            .c = c + products,
            .ldc = ldc + first,
            .count = new_count,
            .sizes = sizes + first};
  }

  // Returns the first group as a batch by pointers.
  Call first_call(const CallType& type) const {
    return by_pointers(
        product(type, *op_a, *op_b, *m, *n, *k, alpha, a, *lda, b, *ldb, beta, const_cast<void**>(c), *ldc),
        *sizes);
  }
};

// Answers the call. real(groups) calls the real function for all groups or for some.
template <class Int, class Real>
int answer_grouped(const Symbol& symbol, const CallType& type, Handle handle, const Groups<Int>& groups,
                   const Real& real) {
  if (!intercepts() || groups.is_invalid_or_empty()) return real(groups);
  // cuBLAS has no grouped batch of complex types.
  const bool is_real = type.type && !drop_in::is_complex(*type.type);
  const CallType real_type = is_real || !type.type ? type : Unsupported{.field = Field::groups};
  const std::size_t scalar_bytes = is_real && drop_in::is_single(*type.type) ? sizeof(float) : sizeof(double);
  const auto part = [&](std::size_t first, std::size_t count) {
    const std::int64_t before = std::accumulate(groups.sizes, groups.sizes + first, std::int64_t{0});
    return groups.from(first, before, scalar_bytes, static_cast<Int>(count));
  };
  std::vector<Call> calls;
  try {
    for (std::size_t i = 0; i < static_cast<std::size_t>(groups.count); ++i)
      calls.push_back(part(i, 1).first_call(real_type));
  } catch (const std::exception&) {  // No memory; nothing is enqueued yet.
    return real(groups);
  }
  const auto forward = [&](std::size_t first, std::size_t count) { return real(part(first, count)); };
  return answer_groups(symbol, handle, calls, ForwardGroups(forward));
}

template <class Int>
int gemm_grouped(Symbol& symbol, kintsugi_type type, Handle handle, const Groups<Int>& groups) {
  const auto real = [&](const Groups<Int>& g) {
    return call_real(symbol, handle, g.op_a, g.op_b, g.m, g.n, g.k, g.alpha, g.a, g.lda, g.b, g.ldb, g.beta,
                     g.c, g.ldc, g.count, g.sizes);
  };
  return answer_grouped(symbol, type, handle, groups, real);
}

template <class Int>
int gemm_grouped_ex(Symbol& symbol, Handle handle, const Groups<Int>& groups, const MatrixTypes& types,
                    int compute) {
  const auto real = [&](const Groups<Int>& g) {
    return call_real(symbol, handle, g.op_a, g.op_b, g.m, g.n, g.k, g.alpha, g.a, types.a, g.lda, g.b,
                     types.b, g.ldb, g.beta, g.c, types.c, g.ldc, g.count, g.sizes, compute);
  };
  return answer_grouped(symbol, type_of(types, compute, default_algorithm), handle, groups, real);
}

}  // namespace

#define KINTSUGI_CUBLAS_GROUPED(type_, integer, symbol_)                                                  \
  KINTSUGI_CUBLAS_DEFINE(symbol_,                                                                         \
                         (Handle handle, const int* op_a, const int* op_b, const integer* m,              \
                          const integer* n, const integer* k, const void* alpha, const void* const* a,    \
                          const integer* lda, const void* const* b, const integer* ldb, const void* beta, \
                          void* const* c, const integer* ldc, integer count, const integer* sizes),       \
                         gemm_grouped<integer>, type_, handle,                                            \
                         {op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes})

#define KINTSUGI_CUBLAS_GROUPED_EX(integer, symbol_)                                                       \
  KINTSUGI_CUBLAS_DEFINE(                                                                                  \
      symbol_,                                                                                             \
      (Handle handle, const int* op_a, const int* op_b, const integer* m, const integer* n,                \
       const integer* k, const void* alpha, const void* const* a, int type_a, const integer* lda,          \
       const void* const* b, int type_b, const integer* ldb, const void* beta, void* const* c, int type_c, \
       const integer* ldc, integer count, const integer* sizes, int compute),                              \
      gemm_grouped_ex<integer>, handle,                                                                    \
      {op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes}, {type_a, type_b, type_c},  \
      compute)

#include "cublas/symbols.def"

}  // namespace kintsugi::cublas
