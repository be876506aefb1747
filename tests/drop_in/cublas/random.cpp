#include "tests/drop_in/cublas/random.hpp"

#include <thread>
#include <vector>

#include "tests/drop_in/cublas/host_engine.hpp"
#include "tests/drop_in/cublas/program.hpp"
#include "tests/drop_in/cublas/random_case.hpp"

namespace kintsugi::test {

namespace {

template <class T>
void check_case(const Entry& entry, ProgramHandle& handle, std::mt19937_64& random, Checks& checks) {
  RandomCase<T> product(entry, random);
  // An epilogue in device pointer mode is cuBLAS's.
  const bool has_epilogue = product.arguments.bias != nullptr || product.arguments.activation != 0;
  const int pointer_mode = has_epilogue ? 0 : static_cast<int>(random() % 2);
  handle.set_pointer_mode(pointer_mode);
  product.arguments.handle = handle.get();
  const int status = call(entry, product.arguments);
  const std::string text = product.text() + " pointer_mode=" + std::to_string(pointer_mode);
  checks.check(status == 0, text + ": status " + std::to_string(status) + " in place of 0");
  if (const std::string error = product.error(); !error.empty()) checks.check(false, text + ": " + error);
}

void check_entry(const Entry& entry, ProgramHandle& handle, std::mt19937_64& random, Checks& checks) {
  const auto type = entry.type.value_or(static_cast<kintsugi_type>(random() % 4));
  switch (type) {
    case KINTSUGI_F32: return check_case<float>(entry, handle, random, checks);
    case KINTSUGI_F64: return check_case<double>(entry, handle, random, checks);
    case KINTSUGI_C32: return check_case<std::complex<float>>(entry, handle, random, checks);
    default: return check_case<std::complex<double>>(entry, handle, random, checks);
  }
}

void run_cases(std::uint64_t seed, long long cases, Checks& checks) {
  make_context_current();
  ProgramHandle handle;
  for (long long number = 0; number < cases; ++number) {
    std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(number));
    // A fifth of the calls are of cublasLtMatmul, the last one.
    const std::size_t place = random() % 5 == 0 ? entries().size() - 1 : random() % entries().size();
    check_entry(entries()[place], handle, random, checks);
    if (executions().count > 0 && last_stream() != nullptr)
      checks.check(last_stream() == handle.stream(), "a product went to another stream than the handle's");
  }
}

// Every call went to where it belongs.
void check_counts(long long calls, bool emulated, Checks& checks) {
  const long real = new_real_products();
  const long executed = executions().count;
  const auto text = [&](const char* what, long long found, long long expected) {
    return std::to_string(found) + " of " + std::to_string(calls) + " calls reached " + what +
           " in place of " + std::to_string(expected);
  };
  checks.check(real == (emulated ? 0 : calls), text("cuBLAS", real, emulated ? 0 : calls));
  checks.check(executed == (emulated ? calls : 0), text("Kintsugi", executed, emulated ? calls : 0));
  checks.check(executions().wrong_queues == 0, "executions without the caller's stream");
}

}  // namespace

int check_random(std::uint64_t seed, long long cases, bool emulated) {
  Checks checks;
  new_real_products();
  run_cases(seed, cases, checks);
  check_counts(cases, emulated, checks);
  return checks.failures();
}

int check_threads(std::uint64_t seed, long long cases, bool emulated) {
  constexpr std::size_t thread_count = 4;
  make_context_current();
  new_real_products();
  std::vector<Checks> checks(thread_count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < thread_count; ++i)
    threads.emplace_back([&, i] { run_cases(seed + i / 2, cases, checks[i]); });  // pairs have equal problems
  for (std::thread& thread : threads) thread.join();
  Checks all;
  check_counts(cases * static_cast<long long>(thread_count), emulated, all);
  int failures = all.failures();
  for (const Checks& found : checks) failures += found.failures();
  return failures;
}

}  // namespace kintsugi::test
