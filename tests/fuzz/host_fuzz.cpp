// Randomised differential test of the C ABI on host memory: random products of every type, contract and
// scheme, each compared with exact sums within the bound that was promised for it
// (tests/support/fuzz_judge.hpp).
//
//   build/tests/host_fuzz                              the run of the test suite
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
    "Multiplies random matrices through the C ABI and checks what was promised of every element.\n"
    "Prints each failure with a line that repeats its case (--case). Exits with 1 if there was one.\n\n"
    "  --cases N    number of cases (default 3000)\n"
    "  --seconds S  stop after so many seconds, whichever comes first\n"
    "  --seed N     seed of the cases (default 1)\n"
    "  --json       print the figures as JSON\n"
    "  --with LINE  give all cases these members, such as 'type=f64 policy=emulate'\n"
    "  --case LINE  run only this case, from a line that a failure printed\n";

struct Figures {
  std::int64_t cases = 0;
  std::int64_t violations = 0;
  std::int64_t elements = 0;                     // that were compared with a bound
  std::map<std::string, std::int64_t> statuses;  // number of calls, by status
  std::map<std::string, std::int64_t> kinds;     // number of calls that succeeded, by promise
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
  const bool names_scheme = !test.scheme.empty();
  switch (status) {
    case KINTSUGI_NOT_SUPPORTED: return names_scheme;
    case KINTSUGI_CONTRACT_UNREACHABLE:
      return names_scheme || (!test.accuracy.empty() && test.accuracy != "exact");
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

// Compares with a plain call, since the bits of an emulation do not depend on threads, limits, workspaces or
// preparation. Returns the difference; "" if there is none, or if this case is not compared.
template <class T>
std::string differs_from_plain_call(const FuzzData<T>& data, const HostResult& result) {
  FuzzCase plain = data.test();
  const bool has_fixed_bits = !plain.scheme.empty() || plain.accuracy == "exact" || plain.policy == "emulate";
  if (!has_fixed_bits || plain.seed % 4 != 0) return "";
  plain.threads = 1, plain.limit = 0, plain.workspace = "own", plain.via = "gemm";
  for (std::string* prepared : {&plain.prepared_a, &plain.prepared_b}) {
    if (*prepared != "one") *prepared = "no";
  }
  plain.prepared_a = plain.prepared_b = "no";
  if (data.test().prepared_a == "one") plain.reuse_a = 1;
  if (data.test().prepared_b == "one") plain.reuse_b = 1;
  const FuzzData<T> same_data(plain);
  HostCall<T> call(same_data);
  const HostResult plain_result = call.run();
  if (plain_result.status != KINTSUGI_SUCCESS)
    return "fails with one thread and without limits: " + plain_result.error;
  const std::string difference = first_difference(data, result.c.data(), plain_result.c.data());
  return difference.empty() ? "" : difference + ", other bits than with one thread and without limits";
}

// After the refusal "... the smallest block needs N", the call must work with a limit of N. Returns what is
// wrong; "" if nothing is.
template <class T>
std::string check_refused_limit(FuzzCase test, const std::string& message) {
  const std::size_t needs = message.rfind("needs ");
  const std::int64_t needed = needs == std::string::npos ? 0 : std::atoll(message.c_str() + needs + 6);
  if (needed <= test.limit) return "a sufficient limit was refused: " + message;
  test.limit = needed;
  const FuzzData<T> data(test);
  const HostResult result = HostCall<T>(data).run();
  if (result.status == KINTSUGI_WORKSPACE_TOO_SMALL ||
      !(result.status == KINTSUGI_SUCCESS || may_fail(test, result.status)))
    return "refused with the limit that the library asked for: " + result.error;
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
  if (result.status == KINTSUGI_WORKSPACE_TOO_SMALL) return check_refused_limit<T>(test, result.error);
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

// True if the judge detects the error that `spoil` puts into the image of a right result.
template <class T>
bool judge_detects(const char* line, const std::function<void(std::byte* first)>& spoil) {
  const FuzzCase test = read_case(line);
  const FuzzData<T> data(test);
  HostResult result = HostCall<T>(data).run();
  const Promise promise = promise_of_call(test, result);
  if (!FuzzJudge<T>(data, promise, result.c.data()).verdict().empty())
    return true;  // the library is wrong, which the cases themselves report
  spoil(result.c.data() + data.c().place.first);
  return !FuzzJudge<T>(data, promise, result.c.data()).verdict().empty();
}

// True if the judge detects errors made on purpose: twice what the contract allows, the last bit of an
// `exact` result, an infinity of the wrong sign, a byte outside C.
bool judge_detects_errors() {
  const auto scale = []<class Real>(std::byte* first, Real factor) {
    Real value;
    std::memcpy(&value, first, sizeof value);
    value *= factor;
    std::memcpy(first, &value, sizeof value);
  };
  const std::string positive = "m=3 n=4 k=20 values_a=uniform01 values_b=uniform01 ";
  return judge_detects<float>(positive.c_str(), [&](std::byte* first) { scale(first, 1 + 60 * 0x1p-24F); }) &&
         judge_detects<double>((positive + "type=f64 accuracy=exact").c_str(),
                               [&](std::byte* first) { scale(first, 1 + 0x1p-52); }) &&
         judge_detects<double>("type=f64 m=2 alpha=inf values_a=uniform01 values_b=uniform01",
                               [&](std::byte* first) { scale(first, -1.0); }) &&
         judge_detects<float>("m=2 n=2 k=2", [](std::byte* first) { first[-1] = std::byte{0}; });
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
    if (w + 1 == count)
      throw std::invalid_argument("'" + word + "' needs a value, or is unknown; see --help");
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
      throw std::invalid_argument("unknown option '" + word + "'; see --help");
  }
  return request;
}

int run_all(const Request& request) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  FuzzChoices choices = choices_of_library();
  if (request.with.find("type=") != std::string::npos) choices.types = {read_case(request.with).type};
  if (!judge_detects_errors())
    throw std::logic_error("the judge does not detect a result that was spoilt on purpose");
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
        "seed %llu: %lld cases, %lld violations, %lld elements compared with a bound, %.1f s\n%s\n",
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
