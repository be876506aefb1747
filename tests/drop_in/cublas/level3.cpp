#include "tests/drop_in/cublas/level3.hpp"

#include <string>

#include "tests/drop_in/cublas/host_engine.hpp"
#include "tests/drop_in/cublas/level3_case.hpp"
#include "tests/drop_in/cublas/program.hpp"

namespace kintsugi::test {

namespace {

// Smallest order that is divided under emulate (drop_in/cublas/level3.cpp).
constexpr std::int64_t min_divided_order = 64;

template <class... Values>
int call_with(const Level3Entry& entry, Values... values) {
  return reinterpret_cast<int (*)(Values...)>(function_of(entry.name))(values...);
}

template <class Int>
int call_as(const Level3Entry& entry, const Level3Arguments& g) {
  const auto m = static_cast<Int>(g.m), n = static_cast<Int>(g.n), k = static_cast<Int>(g.k);
  const auto lda = static_cast<Int>(g.lda), ldb = static_cast<Int>(g.ldb), ldc = static_cast<Int>(g.ldc);
  if (entry.is_update() && entry.has_b())
    return call_with(entry, g.handle, g.uplo, g.op, n, k, g.alpha, g.a, lda, g.b, ldb, g.beta, g.c, ldc);
  if (entry.routine == Routine::trmm)
    return call_with(entry, g.handle, g.side, g.uplo, g.op, g.diag, m, n, g.alpha, g.a, lda, g.b, ldb, g.c,
                     ldc);
  if (entry.is_update())
    return call_with(entry, g.handle, g.uplo, g.op, n, k, g.alpha, g.a, lda, g.beta, g.c, ldc);
  if (entry.is_solve())
    return call_with(entry, g.handle, g.side, g.uplo, g.op, g.diag, m, n, g.alpha, g.a, lda, g.c, ldc);
  return call_with(entry, g.handle, g.side, g.uplo, m, n, g.alpha, g.a, lda, g.b, ldb, g.beta, g.c, ldc);
}

template <class T>
void check_case(const Level3Entry& entry, ProgramHandle& handle, bool emulated, std::mt19937_64& random,
                Checks& checks) {
  Level3Case<T> problem(entry, random);
  const int pointer_mode = static_cast<int>(random() % 2);
  handle.set_pointer_mode(pointer_mode);
  problem.arguments.handle = handle.get();
  executions().count = 0;
  const int status = call(entry, problem.arguments);
  const std::string text = problem.text() + " pointer_mode=" + std::to_string(pointer_mode);
  checks.check(status == 0, text + ": status " + std::to_string(status) + " in place of 0");
  if (const std::string error = problem.error(); !error.empty()) checks.check(false, text + ": " + error);
  const bool has_scalars = pointer_mode == 0
                               ? !problem.has_zero_alpha()
                               : entry.routine == Routine::syrk || entry.routine == Routine::syrkx;
  const bool is_divided = emulated && has_scalars && problem.order() >= min_divided_order;
  checks.check((executions().count > 0) == is_divided,
               text + ": " + std::to_string(executions().count) + " executions of Kintsugi");
}

void check_entry(const Level3Entry& entry, ProgramHandle& handle, bool emulated, std::mt19937_64& random,
                 Checks& checks) {
  switch (entry.type) {
    case KINTSUGI_F32: return check_case<float>(entry, handle, emulated, random, checks);
    case KINTSUGI_F64: return check_case<double>(entry, handle, emulated, random, checks);
    case KINTSUGI_C32: return check_case<std::complex<float>>(entry, handle, emulated, random, checks);
    default: return check_case<std::complex<double>>(entry, handle, emulated, random, checks);
  }
}

using Change = void (*)(Level3Arguments&);

// A call of order 128 with one change. Expects the status, and that cuBLAS got the whole call.
void expect_real(const Level3Entry& entry, const char* text, Change change, int status, ProgramHandle& handle,
                 Checks& checks) {
  std::vector<double> a(2 * 130 * 130, 1), b = a, c = a;
  const double one[2] = {1, 0};
  Level3Arguments g;
  g.handle = handle.get();
  g.m = g.n = 128;
  g.k = entry.is_update() ? 8 : 0;
  g.lda = g.ldb = g.ldc = 128;
  g.alpha = g.beta = one;
  g.a = a.data();
  g.b = b.data();
  g.c = c.data();
  change(g);
  executions().count = 0;
  const int found = call(entry, g);
  const std::string where = std::string(entry.name) + ", " + text + ": ";
  checks.check(found == status,
               where + "status " + std::to_string(found) + " in place of " + std::to_string(status));
  checks.check(executions().count == 0, where + "Kintsugi multiplied");
}

// Products that fail are cuBLAS's, and the result is right.
void check_failing_products(ProgramHandle& handle, Checks& checks) {
  std::mt19937_64 random(11);
  executions().failure = KINTSUGI_OUT_OF_MEMORY;
  for (const Level3Entry& entry : level3_entries()) {
    if (entry.type != KINTSUGI_F64) continue;
    Level3Case<double> problem(entry, random);
    problem.arguments.handle = handle.get();
    checks.check(call(entry, problem.arguments) == 0, problem.text() + ": a failed product gives a status");
    if (const std::string error = problem.error(); !error.empty())
      checks.check(false, problem.text() + ", products fail: " + error);
  }
  executions().failure = 0;
}

}  // namespace

const std::vector<Level3Entry>& level3_entries() {
  static const std::vector<Level3Entry> all{
#define KINTSUGI_CUBLAS_UPDATE(type, integer, routine, symbol) \
  {#symbol, Routine::routine, type, sizeof(integer) == 8},
#define KINTSUGI_CUBLAS_UPDATE_WITH_B(type, integer, routine, symbol) \
  {#symbol, Routine::routine, type, sizeof(integer) == 8},
#define KINTSUGI_CUBLAS_TRIANGULAR(type, integer, symbol) \
  {#symbol, Routine::trmm, type, sizeof(integer) == 8},
#define KINTSUGI_CUBLAS_SYMMETRIC(type, integer, routine, symbol) \
  {#symbol, Routine::routine, type, sizeof(integer) == 8},
#define KINTSUGI_CUBLAS_SOLVE(type, integer, symbol) {#symbol, Routine::trsm, type, sizeof(integer) == 8},
#include "drop_in/cublas/symbols.def"
  };
  return all;
}

const std::vector<const char*>& level3_names() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> list;
    for (const Level3Entry& entry : level3_entries()) list.push_back(entry.name);
    return list;
  }();
  return names;
}

int call(const Level3Entry& entry, const Level3Arguments& arguments) {
  return entry.has_64_bit_integers ? call_as<std::int64_t>(entry, arguments) : call_as<int>(entry, arguments);
}

int check_level3(std::uint64_t seed, long long cases, bool emulated) {
  make_context_current();
  ProgramHandle handle;
  Checks checks;
  for (long long number = 0; number < cases; ++number) {
    std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(number));
    check_entry(level3_entries()[random() % level3_entries().size()], handle, emulated, random, checks);
  }
  return checks.failures();
}

int check_level3_semantics() {
  make_context_current();
  ProgramHandle handle;
  Checks checks;
  for (const Level3Entry& entry : level3_entries()) {
    constexpr int not_initialized = 1, invalid_value = 7;
    const auto expect = [&](const char* text, Change change, int status) {
      expect_real(entry, text, change, status, handle, checks);
    };
    expect(
        "no handle", [](Level3Arguments& g) { g.handle = nullptr; }, not_initialized);
    expect(
        "uplo = 2", [](Level3Arguments& g) { g.uplo = 2; }, invalid_value);
    expect(
        "n = -1", [](Level3Arguments& g) { g.n = -1; }, invalid_value);
    expect(
        "ldc = 127", [](Level3Arguments& g) { g.ldc = 127; }, invalid_value);
    expect(
        "alpha null", [](Level3Arguments& g) { g.alpha = nullptr; }, invalid_value);
    expect(
        "n = 0", [](Level3Arguments& g) { g.n = 0; }, 0);
    expect(
        "an order of 63", [](Level3Arguments& g) { g.m = g.n = 63; }, 0);
    handle.set_math_mode(2);
    expect(
        "pedantic", [](Level3Arguments&) {}, 0);
    handle.set_math_mode(0);
  }
  check_failing_products(handle, checks);
  return checks.failures();
}

}  // namespace kintsugi::test
