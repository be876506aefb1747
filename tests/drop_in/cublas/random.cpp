#include "tests/drop_in/cublas/random.hpp"

#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "tests/drop_in/cublas/host_engine.hpp"
#include "tests/drop_in/cublas/program.hpp"
#include "tests/drop_in/cublas/random_case.hpp"

namespace kintsugi::test {

namespace {

// Each of these makes a call, checks C, and returns how many products or batches of one shape the call has.

template <class T>
long check_groups(const Entry& entry, ProgramHandle& handle, std::mt19937_64& random, Checks& checks) {
  std::deque<RandomCase<T>> groups;
  std::vector<Arguments> arguments;
  for (std::uint64_t count = 1 + random() % 4; count > 0; --count) {
    arguments.push_back(groups.emplace_back(entry, random).arguments);
    arguments.back().handle = handle.get();
  }
  handle.set_pointer_mode(0);  // cuBLAS refuses the other one
  const int status = call_groups(entry, arguments);
  checks.check(status == 0, groups[0].text() + " ...: status " + std::to_string(status) + " in place of 0");
  for (const RandomCase<T>& group : groups)
    if (const std::string error = group.error(); !error.empty())
      checks.check(false, group.text() + " of " + std::to_string(groups.size()) + " groups: " + error);
  return static_cast<long>(groups.size());
}

template <class T>
long check_case(const Entry& entry, ProgramHandle& handle, std::mt19937_64& random, Checks& checks) {
  if (entry.is_grouped()) return check_groups<T>(entry, handle, random, checks);
  RandomCase<T> product(entry, random);
  const int pointer_mode = static_cast<int>(random() % 2);
  handle.set_pointer_mode(pointer_mode);
  product.arguments.handle = handle.get();
  const int status = call(entry, product.arguments);
  const std::string text = product.text() + " pointer_mode=" + std::to_string(pointer_mode);
  checks.check(status == 0, text + ": status " + std::to_string(status) + " in place of 0");
  if (const std::string error = product.error(); !error.empty()) checks.check(false, text + ": " + error);
  return 1;
}

long check_entry(const Entry& entry, ProgramHandle& handle, std::mt19937_64& random, Checks& checks) {
  const std::uint64_t types = entry.is_grouped() ? 2 : 4;
  const auto type = entry.type.value_or(static_cast<kintsugi_type>(random() % types));
  switch (type) {
    case KINTSUGI_F32: return check_case<float>(entry, handle, random, checks);
    case KINTSUGI_F64: return check_case<double>(entry, handle, random, checks);
    case KINTSUGI_C32: return check_case<std::complex<float>>(entry, handle, random, checks);
    default: return check_case<std::complex<double>>(entry, handle, random, checks);
  }
}

long long run_cases(std::uint64_t seed, long long cases, Checks& checks) {
  make_context_current();
  ProgramHandle handle;
  long long products = 0;
  for (long long number = 0; number < cases; ++number) {
    std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(number));
    // A fifth of the calls are of cublasLtMatmul, the last one.
    const std::size_t place = random() % 5 == 0 ? entries().size() - 1 : random() % entries().size();
    products += check_entry(entries()[place], handle, random, checks);
    if (executions().count > 0 && last_stream() != nullptr)
      checks.check(last_stream() == handle.stream(), "a product went to another stream than the handle's");
  }
  return products;
}

// Every call went to where it belongs.
void check_counts(long long calls, long long products, bool emulated, Checks& checks) {
  const long real = new_real_products();
  const long executed = executions().count;
  const auto text = [&](const char* what, long long found, long long expected) {
    return std::to_string(found) + " calls reached " + what + " in place of " + std::to_string(expected);
  };
  checks.check(real == (emulated ? 0 : calls), text("cuBLAS", real, emulated ? 0 : calls));
  checks.check(executed == (emulated ? products : 0), text("Kintsugi", executed, emulated ? products : 0));
  checks.check(executions().wrong_queues == 0, "executions without the caller's stream");
}

}  // namespace

int check_random(std::uint64_t seed, long long cases, bool emulated) {
  Checks checks;
  new_real_products();
  const long long products = run_cases(seed, cases, checks);
  check_counts(cases, products, emulated, checks);
  return checks.failures();
}

int check_threads(std::uint64_t seed, long long cases, bool emulated) {
  constexpr std::size_t thread_count = 4;
  make_context_current();
  new_real_products();
  std::vector<Checks> checks(thread_count);
  std::atomic<long long> products = 0;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < thread_count; ++i)
    threads.emplace_back(
        [&, i] { products += run_cases(seed + i / 2, cases, checks[i]); });  // pairs have equal problems
  for (std::thread& thread : threads) thread.join();
  Checks all;
  check_counts(cases * static_cast<long long>(thread_count), products, emulated, all);
  int failures = all.failures();
  for (const Checks& found : checks) failures += found.failures();
  return failures;
}

}  // namespace kintsugi::test
