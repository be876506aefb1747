// A run of the differential test: workers draw and make calls, each with a lane and a handle of its own, and
// a watchdog names a case that does not end.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gpu/fuzz/draw.hpp"
#include "gpu/fuzz/tally.hpp"

namespace kintsugi::test {

struct FuzzRequest {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;  // number of the first case
  std::int64_t cases = std::numeric_limits<std::int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  int threads = 1;
  double hang_seconds = 60;
  bool same_bits = false;
  DrawLimits limits;
  std::string with, line, json, sabotage;
};

// Exit statuses of the program.
enum FuzzEnd { fuzz_passed = 0, fuzz_violations = 1, fuzz_usage = 2, fuzz_hang = 3, fuzz_device_lost = 4 };

class FuzzSession {
 public:
  explicit FuzzSession(const FuzzRequest& request);

  // These return the exit status.
  int run_one_case();
  int run_cases();
  // Makes the calls of a list one by one, then on all workers at once: the bits must be the same.
  int run_same_bits();

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    std::mutex mutex;
    std::optional<FuzzCase> test;
    Clock::time_point begin;
    std::atomic<bool> inside{false};  // see CallContext
  };
  class Worker;

  FuzzCase draw(std::uint64_t number) const;
  bool goes_on() const;
  template <class Work>
  void with_workers(const Work& work);
  // Makes the call and counts it. Returns nothing if the device was lost or the program failed.
  std::optional<Outcome> call(Worker& worker, const FuzzCase& test, bool judges);
  void report_exception(Worker& worker, const FuzzCase& test, const std::string& what);
  void watch(const std::stop_token& stop);
  void end_if_hung();
  std::optional<FuzzCase> overdue_case(Running& running, bool inside) const;
  [[noreturn]] void end_hung(const FuzzCase& test);
  std::string running_cases();
  void write_json(const std::string& ending) const;
  int finish();

  const FuzzRequest request_;
  const FuzzChoices choices_;
  Tally tally_;
  const std::string device_;
  CaptureGate gate_;
  std::vector<std::unique_ptr<Running>> running_;
  const Clock::time_point begin_ = Clock::now();
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> lost_{false};
  std::mutex watch_mutex_;
  std::condition_variable_any watch_wakes_;
};

}  // namespace kintsugi::test
