#include "base/threads.hpp"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>

#include "base/memory.hpp"
#include "base/stack.hpp"

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

namespace {

// Returns the bytes in a text such as "512", in KiB, or "4 M"; 0 if it is none.
std::size_t bytes_of(const char* text) {
  char* end = nullptr;
  const std::size_t number = std::strtoull(text, &end, 10);
  if (end == text) return 0;
  while (*end == ' ') ++end;
  switch (*end) {
    case 'b':
    case 'B': return number;
    case 'm':
    case 'M': return number << 20;
    case 'g':
    case 'G': return number << 30;
    default: return number << 10;
  }
}

// Returns the size of the stacks of OpenMP's threads, read as GNU OpenMP reads it.
std::size_t read_openmp_stack_bytes() {
  for (const char* name : {"OMP_STACKSIZE", "GOMP_STACKSIZE"})
    if (const char* const text = std::getenv(name))
      if (const std::size_t bytes = bytes_of(text); bytes > 0) return bytes;
  std::size_t bytes = enough_stack_bytes;
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return bytes;
  ::pthread_attr_getstacksize(&attributes, &bytes);
  ::pthread_attr_destroy(&attributes);
  return bytes;
}

constinit MadeOnce<std::size_t> openmp_stack_bytes(read_openmp_stack_bytes);

// True if OpenMP can start so many threads more, and their stacks suffice for the loops.
bool can_start(int threads) {
  const std::size_t stack = openmp_stack_bytes.get();
  constexpr std::size_t bytes_beside_stack = std::size_t{1} << 20;
  return stack >= enough_stack_bytes &&
         has_address_space(static_cast<std::size_t>(threads) * (stack + bytes_beside_stack));
}

}  // namespace

int workers_for(std::int64_t pieces, int threads) {
  const int usable = has_one_thread ? 1 : usable_threads(threads);
  const auto workers =
      static_cast<int>(std::clamp<std::int64_t>(usable, 1, std::max<std::int64_t>(pieces, 1)));
  return workers == 1 || can_start(workers - 1) ? workers : 1;
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

namespace {

std::recursive_mutex shared_state;
int depth = 0;

// Replaces the mutex in a child. A recursive mutex identifies its owner by thread id, and the id of the
// forking thread changes in the child.
void reset_in_child() {
  new (&shared_state) std::recursive_mutex;
  ++depth;
}

[[maybe_unused]] const int registered =
    ::pthread_atfork([] { shared_state.lock(); }, [] { shared_state.unlock(); }, reset_in_child);

}  // namespace

std::unique_lock<std::recursive_mutex> lock_shared_state() { return std::unique_lock(shared_state); }

int fork_depth() { return depth; }

}  // namespace kintsugi::core
