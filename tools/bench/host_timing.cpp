#include "bench/host_timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

namespace kintsugi::tools {

namespace {

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

// Pauses first: idle OpenMP threads spin for milliseconds and OpenBLAS's for 2^26 cycles, on cores that the
// next contestant needs. Then repeats `run` for at least 10 ms with its own threads awake; the fastest run
// counts.
Round time_on_host(const std::function<void()>& run) {
  constexpr auto pause = std::chrono::milliseconds(30);
  constexpr double enough_seconds = 0.01;
  std::this_thread::sleep_for(pause);
  Round quickest{HUGE_VAL, HUGE_VAL, {}};
  double sum = 0;
  while (sum < enough_seconds) {
    const double before = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    // The process's CPU-time clock sometimes does not advance, or goes back: such samples are dropped.
    const double used = processor_seconds() - before;
    if (used > 0) quickest.processor_seconds = std::min(*quickest.processor_seconds, used);
    quickest.seconds = std::min(quickest.seconds, seconds);
    sum += seconds;
  }
  return quickest;
}

}  // namespace kintsugi::tools
