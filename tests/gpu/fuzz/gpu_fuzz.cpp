// Randomised differential test of the C ABI on a device: random products of every type, contract and scheme
// in flight on several streams, each judged by its own bound against exact sums
// (tests/support/fuzz_judge.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "gpu/fuzz/session.hpp"
#include "lab/machine/device.hpp"

namespace kintsugi::test {
namespace {

constexpr const char* usage = R"(usage: gpu_fuzz [OPTIONS]

Multiplies random matrices through the C ABI on a device and judges each result by what was promised of it: the bound of
its contract or scheme on exact sums, every bit where the contract is `exact`, special values by their table, everything
beside C's elements unchanged. A violation prints the case as a line that --case takes back.

  --seconds S      stop after so many seconds
  --cases N        stop after so many cases (without --seconds: 10000)
  --seed N         seed of the cases [1]
  --first N        number of the first case [0]
  --threads N      workers, each with a stream, a handle and 224 MiB of device memory [host's threads - 2, 1 to 14]
  --json FILE      write the figures there, every few seconds and at the end
  --case LINE      this case alone
  --with LINE      give all cases these members, such as 'type=f64 policy=emulate'
  --same-bits      300 cases alone, then for --seconds [60] by all workers [8] at once: the bits have to be the same
  --small          small shapes alone, for compute-sanitizer
  --no-vendor      only cases that our own kernels compute on Hopper, for tools that do not stand the vendor's
  --hang S         give up when a case takes longer, with its line and status 3 [60]
  --host           on the host's engines, without a device
  --sabotage WHAT  spoil every result: element, inner, padding, operand, workspace, replay, hang

Status: 0 no violation, 1 violations, 2 wrong usage, 3 a case that does not end, 4 the device was lost.

example: gpu_fuzz --seconds 150 --seed 7 --json fuzz.json
)";

class Words {
 public:
  Words(int count, char** words) : words_(words + 1, words + count) {}
  bool next(std::string& word) {
    if (at_ == words_.size()) return false;
    word = words_[at_++];
    return true;
  }
  std::string value() {
    if (at_ == words_.size()) throw std::invalid_argument(words_.back() + " needs a value; --help tells");
    return words_[at_++];
  }

 private:
  std::vector<std::string> words_;
  std::size_t at_ = 0;
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
      throw std::invalid_argument("there is no option '" + word + "'; --help tells");
  }
  return request;
}

// Options that were not given.
void complete(FuzzRequest& request) {
  const bool endless = request.seconds == std::numeric_limits<double>::infinity();
  if (request.same_bits && endless) request.seconds = 60;
  if (!request.same_bits && endless) request.cases = std::min<std::int64_t>(request.cases, 10'000);
  if (!request.line.empty()) request.threads = 1;
  if (request.threads > 0) return;
  const int usable = static_cast<int>(std::thread::hardware_concurrency()) - 2;
  request.threads = request.same_bits ? 8 : std::clamp(usable, 1, 14);
}

int run(FuzzRequest request) {
  complete(request);
  if (!request.limits.on_host) {
    const std::string missing = lab::device_missing_reason();
    if (!missing.empty()) throw std::invalid_argument("no device: " + missing + " (--host does without)");
    fmt::print("{}, ", lab::device_facts().name);
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
