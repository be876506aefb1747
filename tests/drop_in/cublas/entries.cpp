#include "tests/drop_in/cublas/entries.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

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
    case Family::grouped:
    case Family::grouped_ex: return call_groups(entry, {g});
    case Family::batched_ex:
      return call_with(entry, g.handle, g.op_a, g.op_b, m, n, k, g.alpha, g.a, type, lda, g.b, type, ldb,
                       g.beta, g.c, type, ldc, count, g.compute, g.algorithm);
  }
  std::abort();
}

// Arrays of the arguments of groups.
template <class Int>
struct GroupArrays {
  std::vector<int> op_a, op_b;
  std::vector<Int> m, n, k, lda, ldb, ldc, count;
  std::vector<const void*> a, b;
  std::vector<void*> c;
  std::vector<unsigned char> alpha, beta;

  explicit GroupArrays(const std::vector<Arguments>& groups) {
    for (const Arguments& g : groups) add(g);
  }

 private:
  void add(const Arguments& g) {
    op_a.push_back(g.op_a);
    op_b.push_back(g.op_b);
    for (const auto& [numbers, number] : {std::pair{&m, g.m},
                                          {&n, g.n},
                                          {&k, g.k},
                                          {&lda, g.lda},
                                          {&ldb, g.ldb},
                                          {&ldc, g.ldc},
                                          {&count, g.count}})
      numbers->push_back(static_cast<Int>(number));
    const auto append = [&]<class Pointer>(std::vector<Pointer>& all, const void* pointers) {
      const auto* first = static_cast<const Pointer*>(pointers);
      if (g.count > 0) all.insert(all.end(), first, first + g.count);
    };
    append(a, g.a);
    append(b, g.b);
    append(c, g.c);
    const std::size_t bytes = g.type == KINTSUGI_F32 ? sizeof(float) : sizeof(double);
    for (const auto& [all, scalar] : {std::pair{&alpha, g.alpha}, {&beta, g.beta}}) {
      const auto* first = static_cast<const unsigned char*>(scalar);
      if (first != nullptr) all->insert(all->end(), first, first + bytes);
    }
  }
};

template <class Int>
int call_groups_as(const Entry& entry, const std::vector<Arguments>& groups) {
  const GroupArrays<Int> g(groups);
  const auto count = static_cast<Int>(groups.size());
  const void* alpha = g.alpha.empty() ? nullptr : g.alpha.data();
  const void* beta = g.beta.empty() ? nullptr : g.beta.data();
  const BlasHandle handle = groups[0].handle;
  const int type = data_type_of(groups[0].type);
  if (entry.family == Family::grouped)
    return call_with(entry, handle, g.op_a.data(), g.op_b.data(), g.m.data(), g.n.data(), g.k.data(), alpha,
                     g.a.data(), g.lda.data(), g.b.data(), g.ldb.data(), beta, g.c.data(), g.ldc.data(),
                     count, g.count.data());
  return call_with(entry, handle, g.op_a.data(), g.op_b.data(), g.m.data(), g.n.data(), g.k.data(), alpha,
                   g.a.data(), type, g.lda.data(), g.b.data(), type, g.ldb.data(), beta, g.c.data(), type,
                   g.ldc.data(), count, g.count.data(), groups[0].compute);
}

}  // namespace

int call_groups(const Entry& entry, const std::vector<Arguments>& groups) {
  return entry.has_64_bit_integers ? call_groups_as<std::int64_t>(entry, groups)
                                   : call_groups_as<int>(entry, groups);
}

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
#define KINTSUGI_CUBLAS_GROUPED(type, integer, symbol) {#symbol, Family::grouped, type, is_64_bit<integer>},
#define KINTSUGI_CUBLAS_GROUPED_EX(integer, symbol) \
  {#symbol, Family::grouped_ex, Nothing{}, is_64_bit<integer>},
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
