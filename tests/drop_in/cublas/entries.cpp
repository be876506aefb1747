#include "tests/drop_in/cublas/entries.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "tests/drop_in/cublas/matmul.hpp"

namespace kintsugi::test {

namespace {

template <class Integer>
constexpr bool is_64_bit = sizeof(Integer) == 8;

// Calls the function with arguments whose types are those of the values.
template <class... Values>
int call_with(const Entry& entry, Values... values) {
  return reinterpret_cast<int (*)(Values...)>(function_of(entry.name))(values...);
}

template <class Int>
int call_as(const Entry& entry, const Arguments& g) {
  const auto m = static_cast<Int>(g.m), n = static_cast<Int>(g.n), k = static_cast<Int>(g.k);
  const auto lda = static_cast<Int>(g.lda), ldb = static_cast<Int>(g.ldb), ldc = static_cast<Int>(g.ldc);
  const auto count = static_cast<Int>(g.count);
  const long long sa = g.stride_a, sb = g.stride_b, sc = g.stride_c;
  const int type = data_type_of(g.type);
  switch (entry.family) {
    case Family::gemm:
      return call_with(entry, g.handle, g.op_a, g.op_b, m, n, k, g.alpha, g.a, lda, g.b, ldb, g.beta, g.c,
                       ldc);
    case Family::typed:
      return call_with(entry, g.handle, g.op_a, g.op_b, m, n, k, g.alpha, g.a, type, lda, g.b, type, ldb,
                       g.beta, g.c, type, ldc);
    case Family::ex:
      return call_with(entry, g.handle, g.op_a, g.op_b, m, n, k, g.alpha, g.a, type, lda, g.b, type, ldb,
                       g.beta, g.c, type, ldc, g.compute, g.algorithm);
    case Family::strided:
      return call_with(entry, g.handle, g.op_a, g.op_b, m, n, k, g.alpha, g.a, lda, sa, g.b, ldb, sb, g.beta,
                       g.c, ldc, sc, count);
    case Family::strided_ex:
      return call_with(entry, g.handle, g.op_a, g.op_b, m, n, k, g.alpha, g.a, type, lda, sa, g.b, type, ldb,
                       sb, g.beta, g.c, type, ldc, sc, count, g.compute, g.algorithm);
    case Family::batched:
      return call_with(entry, g.handle, g.op_a, g.op_b, m, n, k, g.alpha, g.a, lda, g.b, ldb, g.beta, g.c,
                       ldc, count);
    case Family::matmul: return call_matmul(g);
    case Family::batched_ex:
      return call_with(entry, g.handle, g.op_a, g.op_b, m, n, k, g.alpha, g.a, type, lda, g.b, type, ldb,
                       g.beta, g.c, type, ldc, count, g.compute, g.algorithm);
  }
  std::abort();
}

}  // namespace

const std::vector<Entry>& entries() {
  using Nothing = std::optional<kintsugi_type>;
  static const std::vector<Entry> all{
#define KINTSUGI_CUBLAS_GEMM(type, integer, symbol) {#symbol, Family::gemm, type, is_64_bit<integer>},
#define KINTSUGI_CUBLAS_TYPED_GEMM(type, integer, symbol) {#symbol, Family::typed, type, is_64_bit<integer>},
#define KINTSUGI_CUBLAS_GEMM_EX(integer, symbol) {#symbol, Family::ex, Nothing{}, is_64_bit<integer>},
#define KINTSUGI_CUBLAS_STRIDED(type, integer, symbol) {#symbol, Family::strided, type, is_64_bit<integer>},
#define KINTSUGI_CUBLAS_STRIDED_EX(integer, symbol) \
  {#symbol, Family::strided_ex, Nothing{}, is_64_bit<integer>},
#define KINTSUGI_CUBLAS_BATCHED(type, integer, symbol) {#symbol, Family::batched, type, is_64_bit<integer>},
#define KINTSUGI_CUBLAS_BATCHED_EX(integer, symbol) \
  {#symbol, Family::batched_ex, Nothing{}, is_64_bit<integer>},
#include "drop_in/cublas/symbols.def"
      {"cublasLtMatmul", Family::matmul, Nothing{}, true},
  };
  return all;
}

int data_type_of(kintsugi_type type) {
  constexpr int numbers[] = {0, 1, 4, 5};
  return numbers[type];
}

int call(const Entry& entry, const Arguments& arguments) {
  return entry.has_64_bit_integers ? call_as<std::int64_t>(entry, arguments) : call_as<int>(entry, arguments);
}

void* function_of(const char* name) {
  void* found = ::dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no loaded library has %s\n", name);
    std::abort();
  }
  return found;
}

}  // namespace kintsugi::test
