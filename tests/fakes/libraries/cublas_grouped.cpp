// Grouped batches of the fake cuBLAS. They check their arguments as cuBLAS does, and note their names.
#include <cstdint>
#include <vector>

#include "kintsugi/kintsugi.h"
#include "tests/fakes/libraries/fake_cublas.hpp"

namespace {

using namespace kintsugi::fake;

template <class Int>
struct Arrays {
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
};

template <class Int>
std::vector<Product> products_of(const Arrays<Int>& g, DataType type, ComputeType compute) {
  std::vector<Product> products;
  const auto scalar = [&](const void* scalars, Int i) {
    const auto offset = static_cast<std::size_t>(i) * element_bytes(type);
    return scalars != nullptr ? static_cast<const char*>(scalars) + offset : nullptr;
  };
  for (Int i = 0; i < g.count; ++i)
    products.push_back({g.op_a[i], g.op_b[i], g.m[i], g.n[i], g.k[i], scalar(g.alpha, i), scalar(g.beta, i),
                        type, compute, g.lda[i], g.ldb[i], g.ldc[i]});
  return products;
}

template <class Int>
int answer_grouped(const char* name, BlasHandle handle, const Arrays<Int>& g, DataType type,
                   ComputeType compute) {
  if (handle == nullptr) return not_initialized;
  const std::vector<Product> products = products_of(g, type, compute);
  if (products.empty()) return g.count < 0 ? invalid_value : 0;
  const Product& first = products[0];
  note("{} {} groups={} stream={}", name,
       shape(first.op_a, first.op_b, first.m, first.n, first.k, type, type, compute), g.count,
       state_of(handle).stream);
  if (!state_of(handle).scalars_on_host()) return not_supported;
  for (std::size_t i = 0; i < products.size(); ++i)
    if (!is_valid(products[i], g.sizes[i])) return invalid_value;
  // cuBLAS 13.1 has no emulation of groups.
  if (const int number = static_cast<int>(compute); number == 78 || number == 79) return not_supported;
  if (!is_set("FAKE_CUDA_MULTIPLY")) return 0;
  std::int64_t item = 0;
  for (std::size_t i = 0; i < products.size(); ++i)
    for (Int j = 0; j < g.sizes[i]; ++j, ++item) multiply_item(products[i], g.a[item], g.b[item], g.c[item]);
  return 0;
}

}  // namespace

#define KINTSUGI_CUBLAS_GROUPED(type_, integer, symbol_)                                                   \
  KINTSUGI_FAKE_BLAS int symbol_(BlasHandle handle, const int* op_a, const int* op_b, const integer* m,    \
                                 const integer* n, const integer* k, const void* alpha,                    \
                                 const void* const* a, const integer* lda, const void* const* b,           \
                                 const integer* ldb, const void* beta, void* const* c, const integer* ldc, \
                                 integer count, const integer* sizes) {                                    \
    const bool is_single = (type_) == KINTSUGI_F32;                                                        \
    return answer_grouped<integer>(                                                                        \
        #symbol_, handle, {op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes},        \
        is_single ? DataType::f32 : DataType::f64, is_single ? ComputeType::f32 : ComputeType::f64);       \
  }
#define KINTSUGI_CUBLAS_GROUPED_EX(integer, symbol_)                                                         \
  KINTSUGI_FAKE_BLAS int symbol_(                                                                            \
      BlasHandle handle, const int* op_a, const int* op_b, const integer* m, const integer* n,               \
      const integer* k, const void* alpha, const void* const* a, DataType type, const integer* lda,          \
      const void* const* b, DataType, const integer* ldb, const void* beta, void* const* c, DataType,        \
      const integer* ldc, integer count, const integer* sizes, ComputeType compute) {                        \
    return answer_grouped<integer>(#symbol_, handle,                                                         \
                                   {op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, count, sizes}, \
                                   type, compute);                                                           \
  }
#include "drop_in/cublas/symbols.def"
