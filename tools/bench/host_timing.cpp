#include "bench/host_timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

namespace kintsugi::tools {

namespace {

// Returns the CPU time that all threads of the process have used.
double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

// Pauses first, because idle threads of the previous contestant still occupy cores: OpenMP's spin for
// milliseconds, OpenBLAS's for 2^26 cycles. Then repeats `run` for at least 10 ms, and returns the fastest
// run. Runs that are too short for the clock are timed several at a time.
Round time_on_host(const std::function<void()>& run) {
  constexpr auto pause = std::chrono::milliseconds(30);
  constexpr double enough_seconds = 0.01;
  constexpr double min_seconds = 50e-6;  // reading both clocks takes half a microsecond
  std::this_thread::sleep_for(pause);
  Round quickest{.seconds = HUGE_VAL, .processor_seconds = HUGE_VAL, .state = {}};
  double sum = 0;
  for (int runs = 1; sum < enough_seconds;) {
    const double processor_start = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // The CPU-time clock of the process sometimes stands still or goes back. Such samples are dropped.
    const double used = processor_seconds() - processor_start;
    sum += seconds;
    if (seconds < min_seconds && sum < enough_seconds) {
      runs *= 2;
      continue;
    }
    if (used > 0) quickest.processor_seconds = std::min(*quickest.processor_seconds, used / runs);
    quickest.seconds = std::min(quickest.seconds, seconds / runs);
  }
  return quickest;
}

Round CallTimer::time(const measure::DeviceStream& stream, const std::function<void(std::int64_t)>& call) {
  const std::int64_t untimed_calls = next_call_ == 0 ? std::max(problems_, timed_calls) : timed_calls;
  for (std::int64_t i = 0; i < untimed_calls; ++i) call(next_call_++);
  stream.synchronize();
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < timed_calls; ++i) call(next_call_++);
  Round round;
  round.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                  static_cast<double>(timed_calls);
  stream.synchronize();
  return round;
}

}  // namespace kintsugi::tools
