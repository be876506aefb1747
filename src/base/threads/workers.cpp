#include "base/threads/workers.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/threads/fork.hpp"

namespace kintsugi::core {

namespace {

using Clock = std::chrono::steady_clock;

// Time for which the machine counts as busy after a thread of a short call was preempted; short calls use one
// thread while it lasts. It must be short, because even on an idle machine daemons preempt a thread a few
// times per second.
constexpr auto busy_time = std::chrono::milliseconds(50);

std::atomic<Clock::rep> busy_until{0};
thread_local bool has_one_thread = false;

std::int64_t preemptions_of_thread() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

int workers_for(std::int64_t pieces, int threads) {
  const int usable = has_one_thread ? 1 : usable_threads(threads);
  return static_cast<int>(std::clamp<std::int64_t>(usable, 1, std::max<std::int64_t>(pieces, 1)));
}

ShortCall::ShortCall(bool is_short) : is_short_(is_short) {
  if (!is_short_) return;
  preemptions_ = preemptions_of_thread();
  has_one_thread = Clock::now().time_since_epoch().count() < busy_until.load(std::memory_order_relaxed);
}

ShortCall::~ShortCall() {
  if (!is_short_) return;
  has_one_thread = false;
  if (preemptions_of_thread() != preemptions_)
    busy_until.store((Clock::now() + busy_time).time_since_epoch().count(), std::memory_order_relaxed);
}

}  // namespace kintsugi::core
