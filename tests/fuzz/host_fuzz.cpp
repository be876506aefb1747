// Randomised differential test of the C ABI on host memory: random products of every type, contract and
// scheme, each judged by its own bound against exact sums (tests/support/fuzz_judge.hpp).
//
//   build/tests/host_fuzz                              what the test suite takes
//   build/tests/host_fuzz --cases 1000000 --seed 7     a long run
//   build/tests/host_fuzz --case 'type=f64 m=3 ...'    one case, as a failure prints it
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/host_call.hpp"
#include "tests/support/fuzz_judge.hpp"
#include "tests/support/fuzz_same.hpp"

namespace kintsugi::test {
namespace {

using nlohmann::json;

const char* const usage =
    "usage: host_fuzz [--cases N] [--seconds S] [--seed N] [--json] [--with LINE] [--case LINE] [--help]\n\n"
    "Multiplies random matrices through the C ABI and judges every element by what was promised. Failures "
    "print the case\n"
    "as a line for --case. Ends with status 1 when there was one.\n\n"
    "  --cases N    number of cases (default 3000)\n"
    "  --seconds S  stop after so many seconds, whichever comes first\n"
    "  --seed N     seed of the cases (default 1)\n"
    "  --json       print the figures as JSON\n"
    "  --with LINE  give all cases these members, such as 'type=f64 policy=emulate'\n"
    "  --case LINE  run this case alone, and say what came of it\n";

struct Figures {
  std::int64_t cases = 0;
  std::int64_t violations = 0;
  std::int64_t elements = 0;                     // that a bound was asked of
  std::map<std::string, std::int64_t> statuses;  // of calls
  std::map<std::string, std::int64_t> kinds;     // calls that succeeded, by promise
  std::map<std::string, double> worst;           // largest |error| / bound, by promise

  json to_json(std::uint64_t seed, double seconds) const {
    return {{"seed", seed},         {"cases", cases},    {"violations", violations}, {"elements", elements},
            {"statuses", statuses}, {"promises", kinds}, {"worst_ratios", worst},    {"seconds", seconds}};
  }
};

const char* name_of(Promise::Kind kind) {
  switch (kind) {
    case Promise::Kind::exact: return "exact";
    case Promise::Kind::contract: return "contract";
    case Promise::Kind::native: return "native";
    default: return "scheme";
  }
}

// True if the library may refuse the case with that status.
bool may_fail(const FuzzCase& test, kintsugi_status status) {
  const bool scheme = !test.scheme.empty();
  switch (status) {
    case KINTSUGI_NOT_SUPPORTED: return scheme;
    case KINTSUGI_CONTRACT_UNREACHABLE: return scheme || (!test.accuracy.empty() && test.accuracy != "exact");
    case KINTSUGI_WORKSPACE_TOO_SMALL: return test.limit > 0;
    default: return false;
  }
}

Promise promise_of_call(const FuzzCase& test, const HostResult& result) {
  Promise promise = promise_of(test);
  if (promise.kind == Promise::Kind::scheme && !result.plan.empty())
    promise.bound = bound_of(json::parse(result.plan), json::parse(result.report), test.batch);
  return promise;
}

// The bits of an emulation do not depend on threads, limits, workspaces or preparation.
template <class T>
std::string differs_from_plain_call(const FuzzData<T>& data, const HostResult& result) {
  FuzzCase plain = data.test();
  const bool fixed = !plain.scheme.empty() || plain.accuracy == "exact" || plain.policy == "emulate";
  if (!fixed || plain.seed % 4 != 0) return "";
  plain.threads = 1, plain.limit = 0, plain.workspace = "own", plain.via = "gemm";
  for (std::string* prepared : {&plain.prepared_a, &plain.prepared_b}) {
    if (*prepared != "one") *prepared = "no";
  }
  plain.prepared_a = plain.prepared_b = "no";
  if (data.test().prepared_a == "one") plain.reuse_a = 1;
  if (data.test().prepared_b == "one") plain.reuse_b = 1;
  const FuzzData<T> same(plain);
  HostCall<T> call(same);
  const HostResult other = call.run();
  if (other.status != KINTSUGI_SUCCESS) return "one thread without limits: " + other.error;
  const std::string difference = first_difference(data, result.c.data(), other.c.data());
  return difference.empty() ? "" : difference + ", other bits than with one thread and without limits";
}

// "... the smallest block needs N": so with N the call goes.
template <class T>
std::string refused_limit(FuzzCase test, const std::string& message) {
  const std::size_t at = message.rfind("needs ");
  const std::int64_t needed = at == std::string::npos ? 0 : std::atoll(message.c_str() + at + 6);
  if (needed <= test.limit) return "a limit is refused that is not below what is needed: " + message;
  test.limit = needed;
  const FuzzData<T> data(test);
  const HostResult result = HostCall<T>(data).run();
  if (result.status == KINTSUGI_WORKSPACE_TOO_SMALL ||
      !(result.status == KINTSUGI_SUCCESS || may_fail(test, result.status)))
    return "with the limit that the library asked for: " + result.error;
  return result.broken;
}

template <class T>
std::string verdict_of(const FuzzCase& test, Figures& figures) {
  const FuzzData<T> data(test);
  const HostResult result = HostCall<T>(data).run();
  ++figures.statuses[kintsugi_status_name(result.status)];
  if (!result.broken.empty()) return result.broken;
  if (result.status != KINTSUGI_SUCCESS && !may_fail(test, result.status))
    return std::string(kintsugi_status_name(result.status)) + ": " + result.error;
  if (result.status == KINTSUGI_WORKSPACE_TOO_SMALL) return refused_limit<T>(test, result.error);
  if (result.status != KINTSUGI_SUCCESS) return "";
  const Promise promise = promise_of_call(test, result);
  FuzzJudge<T> judge(data, promise, result.c.data());
  const std::string verdict = judge.verdict();
  ++figures.kinds[name_of(promise.kind)];
  figures.elements += judge.bounded_elements();
  double& worst = figures.worst[name_of(promise.kind)];
  worst = std::max(worst, judge.worst_ratio());
  return verdict.empty() ? differs_from_plain_call(data, result) : verdict;
}

// True if the judge detects the error that `spoil` put into the image of a right result.
template <class T>
bool sees(const char* line, const std::function<void(std::byte* first)>& spoil) {
  const FuzzCase test = read_case(line);
  const FuzzData<T> data(test);
  HostResult result = HostCall<T>(data).run();
  const Promise promise = promise_of_call(test, result);
  if (!FuzzJudge<T>(data, promise, result.c.data()).verdict().empty())
    return true;  // said by the cases themselves
  spoil(result.c.data() + data.c().place.first);
  return !FuzzJudge<T>(data, promise, result.c.data()).verdict().empty();
}

// Intended failures: an error of twice the contract, a last place of `exact`, a class, a byte beside C.
bool sees_what_is_wrong() {
  const auto scaled = []<class Real>(std::byte* first, Real factor) {
    Real value;
    std::memcpy(&value, first, sizeof value);
    value *= factor;
    std::memcpy(first, &value, sizeof value);
  };
  const std::string positive = "m=3 n=4 k=20 values_a=uniform01 values_b=uniform01 ";
  return sees<float>(positive.c_str(), [&](std::byte* first) { scaled(first, 1 + 60 * 0x1p-24F); }) &&
         sees<double>((positive + "type=f64 accuracy=exact").c_str(),
                      [&](std::byte* first) { scaled(first, 1 + 0x1p-52); }) &&
         sees<double>("type=f64 m=2 alpha=inf values_a=uniform01 values_b=uniform01",
                      [&](std::byte* first) { scaled(first, -1.0); }) &&
         sees<float>("m=2 n=2 k=2", [](std::byte* first) { first[-1] = std::byte{0}; });
}

std::string run(const FuzzCase& test, Figures& figures) {
  const std::string verdict = with_type(test.type, [&]<class T>() { return verdict_of<T>(test, figures); });
  ++figures.cases;
  if (verdict.empty()) return "";
  ++figures.violations;
  std::fprintf(stderr, "violation: %s\n  host_fuzz --case '%s'\n", verdict.c_str(), to_text(test).c_str());
  return verdict;
}

struct Request {
  std::int64_t cases = 3000;
  double seconds = std::numeric_limits<double>::infinity();
  std::uint64_t seed = 1;
  bool as_json = false;
  std::string line, with;
};

Request read_request(int count, char** words) {
  Request request;
  for (int w = 1; w < count; ++w) {
    const std::string word = words[w];
    if (word == "--json") {
      request.as_json = true;
      continue;
    }
    if (w + 1 == count) throw std::invalid_argument("'" + word + "' is no option with a value; --help tells");
    const std::string value = words[++w];
    if (word == "--cases")
      request.cases = std::stoll(value);
    else if (word == "--seconds")
      request.seconds = std::stod(value);
    else if (word == "--seed")
      request.seed = std::stoull(value);
    else if (word == "--case")
      request.line = value;
    else if (word == "--with")
      request.with = value;
    else
      throw std::invalid_argument("unknown option '" + word + "'; --help tells");
  }
  return request;
}

int run_all(const Request& request) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  FuzzChoices choices = choices_of_library();
  if (request.with.find("type=") != std::string::npos) choices.types = {read_case(request.with).type};
  if (!sees_what_is_wrong()) throw std::logic_error("a spoilt result passes for a right one");
  Figures figures;
  if (!request.line.empty()) {
    if (run(read_case(request.line), figures).empty()) std::printf("no violation\n");
  } else {
    for (std::int64_t number = 0;
         number < request.cases && seconds() < request.seconds && figures.violations < 20; ++number)
      run(read_case(request.with,
                    CaseGenerator(choices, request.seed, static_cast<std::uint64_t>(number)).draw()),
          figures);
  }
  const json summary = figures.to_json(request.seed, seconds());
  if (request.as_json) {
    std::printf("%s\n", summary.dump(2).c_str());
  } else {
    std::printf(
        "seed %llu: %lld cases, %lld violations, %lld elements held against a bound, %.1f s\n%s\n",
        static_cast<unsigned long long>(request.seed), static_cast<long long>(figures.cases),
        static_cast<long long>(figures.violations), static_cast<long long>(figures.elements), seconds(),
        json({{"statuses", figures.statuses}, {"promises", figures.kinds}, {"worst_ratios", figures.worst}})
            .dump()
            .c_str());
  }
  return figures.violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kintsugi::test

int main(int count, char** words) {
  using namespace kintsugi::test;
  if (count > 1 && std::string(words[1]) == "--help") {
    std::printf("%s", usage);
    return 0;
  }
  try {
    return run_all(read_request(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host_fuzz: %s\n", error.what());
    return 2;
  }
}
