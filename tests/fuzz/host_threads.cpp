// Threads that call at the same time, each with a handle of its own, get the bits of calls made alone; so do
// threads that share one plan and its prepared operands. The first calls of the process are made by several
// threads at once too, so that they compete for what the library initialises at its first use.
//
//   build/tests/host_threads                           the run of the test suite
//   build/tests/host_threads --rounds 100 --seed 7     a longer run
//
// Under ThreadSanitizer every call has one OpenMP thread: the barriers of GNU OpenMP are futexes that the
// sanitizer does not see, so that it takes every parallel region of several threads for a race.
#include <cstdio>
#include <thread>

#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/host_call.hpp"
#include "tests/support/fuzz_same.hpp"

namespace kintsugi::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::int64_t max_threads_of_a_call = 1;
constexpr std::int64_t cases_of_a_round = 24;
#else
constexpr std::int64_t max_threads_of_a_call = 3;
constexpr std::int64_t cases_of_a_round = 100;
#endif
constexpr int callers = 8;

// Runs call(caller) in all callers' threads at the same time.
template <class Call>
void run_callers(const Call& call) {
  std::vector<std::thread> threads;
  for (int caller = 0; caller < callers; ++caller) threads.emplace_back([&call, caller] { call(caller); });
  for (std::thread& thread : threads) thread.join();
}

HostResult result_of(const FuzzCase& test) {
  return with_type(test.type, [&]<class T>() {
    const FuzzData<T> data(test);
    return HostCall<T>(data).run();
  });
}

bool same_result(const FuzzCase& test, const HostResult& x, const HostResult& y) {
  if (x.status != y.status || !x.broken.empty()) return false;
  return with_type(test.type, [&]<class T>() {
    return first_difference(FuzzData<T>(test), x.c.data(), y.c.data()).empty();
  });
}

int count_differing(const std::vector<FuzzCase>& cases) {
  std::vector<std::vector<HostResult>> results(callers, std::vector<HostResult>(cases.size()));
  run_callers([&](int caller) {
    for (std::size_t step = 0; step < cases.size(); ++step) {
      // Every caller begins with another case, so that different calls run at the same time.
      const std::size_t c = (step + static_cast<std::size_t>(caller) * 5) % cases.size();
      results[static_cast<std::size_t>(caller)][c] = result_of(cases[c]);
    }
  });
  int differing = 0;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const HostResult alone = result_of(cases[c]);
    for (const auto& caller_results : results) {
      if (same_result(cases[c], alone, caller_results[c])) continue;
      ++differing;
      std::fprintf(stderr, "the bits differ from those of the call alone: %s %s\n  %s\n",
                   caller_results[c].error.c_str(), caller_results[c].broken.c_str(),
                   to_text(cases[c]).c_str());
    }
  }
  return differing;
}

// All callers share one plan and one prepared A; each has its own C.
int count_differing_of_shared_plans(const std::vector<FuzzCase>& cases) {
  int differing = 0;
  for (FuzzCase test : cases) {
    if (test.type != "f64" || test.batches != "strided") continue;
    test.via = "plan", test.workspace = "own", test.limit = 0;
    test.prepared_a = "borrowed", test.prepared_b = "no";
    const FuzzData<double> data(test);
    HostCall<double> alone(data);
    const HostResult expected = alone.run();
    if (expected.status != KINTSUGI_SUCCESS) continue;
    std::vector<HostResult> results(callers);
    run_callers([&](int caller) { results[static_cast<std::size_t>(caller)] = alone.run_again(); });
    for (const HostResult& result : results) {
      if (same_result(test, expected, result)) continue;
      ++differing;
      std::fprintf(stderr, "the bits differ where callers share a plan: %s\n  %s\n", result.error.c_str(),
                   to_text(test).c_str());
    }
  }
  return differing;
}

std::vector<FuzzCase> draw(const FuzzChoices& choices, std::uint64_t seed, std::int64_t round) {
  std::vector<FuzzCase> cases;
  for (std::int64_t number = 0; number < cases_of_a_round; ++number) {
    const std::int64_t stream = round * cases_of_a_round + number;
    cases.push_back(CaseGenerator(choices, seed, static_cast<std::uint64_t>(stream)).draw());
  }
  return cases;
}

int run(std::int64_t rounds, std::uint64_t seed) {
  // Round 0 names no scheme or engine: listing them would initialise the library from one thread, and its
  // first use must be concurrent.
  FuzzChoices choices;
  choices.max_threads = max_threads_of_a_call;
  choices.max_work = 10'000;
  int differing = count_differing(draw(choices, seed, 0));
  const FuzzChoices all = choices_of_library();
  choices.engines = all.engines;
  choices.schemes_fp32 = all.schemes_fp32;
  choices.schemes_fp64 = all.schemes_fp64;
  choices.schemes_dd = all.schemes_dd;
  for (std::int64_t round = 1; round < rounds; ++round) {
    const std::vector<FuzzCase> cases = draw(choices, seed, round);
    differing += count_differing(cases) + count_differing_of_shared_plans(cases);
  }
  std::printf(
      "seed %llu: %d callers, %lld rounds of %lld cases, %d results differ from those of calls alone\n",
      static_cast<unsigned long long>(seed), callers, static_cast<long long>(rounds),
      static_cast<long long>(cases_of_a_round), differing);
  return differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kintsugi::test

int main(int count, char** words) {
  std::int64_t rounds = 3;
  std::uint64_t seed = 1;
  for (int w = 1; w < count; w += 2) {
    const std::string word = words[w];
    if (w + 1 < count && word == "--rounds") {
      rounds = std::stoll(words[w + 1]);
    } else if (w + 1 < count && word == "--seed") {
      seed = std::stoull(words[w + 1]);
    } else {
      std::printf("usage: host_threads [--rounds N] [--seed N] [--help]\n");
      return word == "--help" ? 0 : 2;
    }
  }
  return kintsugi::test::run(rounds, seed);
}
