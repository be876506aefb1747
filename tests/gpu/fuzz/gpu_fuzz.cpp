// Randomised differential test of the C ABI on a device: random products of every type, contract and scheme
// run on several streams at once; each result is compared with exact sums, within the bound that was promised
// for it (tests/support/fuzz_judge.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "gpu/fuzz/session.hpp"
#include "tools/measure/machine/device.hpp"

namespace kintsugi::test {
namespace {

constexpr const char* usage = R"(usage: gpu_fuzz [OPTIONS]

Multiplies random matrices through the C ABI on a device and checks what was promised of each result: its distance from
exact sums is within the bound of the contract or scheme, every bit is right where the contract is `exact`, special values
are those of the table in docs/ARCHITECTURE.md, and no memory but C's elements has changed. Each violation is printed with
a line that repeats the case (--case).

  --seconds S      stop after so many seconds
  --cases N        stop after so many cases (without --seconds: 10000)
  --seed N         seed of the cases [1]
  --first N        number of the first case [0]
  --threads N      workers, each with a stream, a handle and 224 MiB of device memory [host's threads - 2, 1 to 14]
  --json FILE      write the figures there, every few seconds and at the end
  --case LINE      run only this case, from a line that a violation printed
  --with LINE      give all cases these members, such as 'type=f64 policy=emulate'
  --same-bits      run 300 cases one by one, then for --seconds [60] on all workers [8] at once: the bits must be the same
  --small          only small shapes, for compute-sanitizer
  --no-vendor      only cases that Kintsugi's own kernels compute on Hopper, for tools that break on cuBLAS's kernels
  --hang S         give up when a case takes longer, with its line and status 3 [60]
  --host           use the host's engines; needs no device
  --sabotage WHAT  spoil every result, to test this program: element, inner, padding, operand, workspace, replay, hang

Status: 0 no violation, 1 violations, 2 wrong usage, 3 a case that does not end, 4 the device was lost.

example: gpu_fuzz --seconds 150 --seed 7 --json fuzz.json
)";

class Words {
 public:
  Words(int count, char** words) : words_(words + 1, words + count) {}
  bool next(std::string& word) {
    if (next_ == words_.size()) return false;
    word = words_[next_++];
    return true;
  }
  std::string value() {
    if (next_ == words_.size()) throw std::invalid_argument(words_.back() + " needs a value; see --help");
    return words_[next_++];
  }

 private:
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

FuzzRequest read_request(Words words) {
  FuzzRequest request;
  request.threads = 0;
  for (std::string word; words.next(word);) {
    if (word == "--seconds")
      request.seconds = std::stod(words.value());
    else if (word == "--cases")
      request.cases = std::stoll(words.value());
    else if (word == "--seed")
      request.seed = std::stoull(words.value());
    else if (word == "--first")
      request.first = std::stoull(words.value());
    else if (word == "--threads")
      request.threads = std::stoi(words.value());
    else if (word == "--json")
      request.json = words.value();
    else if (word == "--case")
      request.line = words.value();
    else if (word == "--with")
      request.with = words.value();
    else if (word == "--hang")
      request.hang_seconds = std::stod(words.value());
    else if (word == "--sabotage")
      request.sabotage = words.value();
    else if (word == "--same-bits")
      request.same_bits = true;
    else if (word == "--small")
      request.limits.small = true;
    else if (word == "--no-vendor")
      request.limits.no_vendor = true;
    else if (word == "--host")
      request.limits.on_host = true;
    else
      throw std::invalid_argument("there is no option '" + word + "'; see --help");
  }
  return request;
}

// Sets the options that were not given.
void set_defaults(FuzzRequest& request) {
  const bool has_no_time_limit = request.seconds == std::numeric_limits<double>::infinity();
  if (request.same_bits && has_no_time_limit) request.seconds = 60;
  if (!request.same_bits && has_no_time_limit) request.cases = std::min<std::int64_t>(request.cases, 10'000);
  if (!request.line.empty()) request.threads = 1;
  if (request.threads > 0) return;
  const int usable = static_cast<int>(std::thread::hardware_concurrency()) - 2;
  request.threads = request.same_bits ? 8 : std::clamp(usable, 1, 14);
}

int run(FuzzRequest request) {
  set_defaults(request);
  if (!request.limits.on_host) {
    const std::string missing = measure::device_missing_reason();
    if (!missing.empty())
      throw std::invalid_argument("no device: " + missing + " (with --host none is needed)");
    fmt::print("{}, ", measure::device_facts().name);
  }
  fmt::print("library {}, seed {}, {} workers\n", kintsugi_version(), request.seed, request.threads);
  std::fflush(stdout);
  FuzzSession session(request);
  if (!request.line.empty()) return session.run_one_case();
  return request.same_bits ? session.run_same_bits() : session.run_cases();
}

}  // namespace
}  // namespace kintsugi::test

int main(int count, char** words) {
  using namespace kintsugi::test;
  if (count > 1 && (std::string(words[1]) == "--help" || std::string(words[1]) == "-h")) {
    fmt::print("{}", usage);
    return 0;
  }
  try {
    return run(read_request({count, words}));
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_fuzz: {}\n", error.what());
    return fuzz_usage;
  }
}
