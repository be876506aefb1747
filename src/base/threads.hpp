// Threads: how many a loop has, and what keeps the library usable in the child of a fork.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace kintsugi::core {

// Number of threads for a loop over `pieces` pieces of work. It is at most one per piece, because libgomp
// ends the program if it cannot create a thread. It is 1 in a forked child, in a ShortCall on a busy machine,
// and where OMP_STACKSIZE is too small or RLIMIT_AS leaves no room for more.
int workers_for(std::int64_t pieces, int threads);

// Marks a call whose loops take less than a time slice of the scheduler, as long as the object lives.
//
// A parallel loop ends when its slowest thread has ended; until then OpenMP's other threads spin. If another
// program wants the cores, the scheduler may take one of the threads off its core for a time slice. Then one
// parallel loop takes longer than all loops of the call would take on one thread. The class therefore reads
// how often the scheduler preempted the calling thread. After a preemption, loops of short calls have one
// thread for a while.
class ShortCall {
 public:
  explicit ShortCall(bool is_short);  // false: marks nothing
  ShortCall(const ShortCall&) = delete;
  ShortCall& operator=(const ShortCall&) = delete;
  ~ShortCall();

 private:
  bool is_short_;
  std::int64_t preemptions_ = 0;  // preemptions of the calling thread before the call
};

// The functions below keep the library usable in the child of a fork, in which only the forking thread
// exists.

// Locks state that the whole program shares, such as the environment. A fork waits for this lock, so the
// child finds the state consistent and the lock free.
std::unique_lock<std::recursive_mutex> lock_shared_state();

// 0 in the process that loaded the library, 1 in its child, 2 in a child of the child, and so on.
int fork_depth();

// Most threads of every call of the process; 0: no limit.
inline constinit std::atomic<int> thread_limit = 0;

// Number of threads for a call that may have `threads` threads. It is 1 in a child process: there GNU OpenMP
// would wait forever for threads that only the parent has.
inline int usable_threads(int threads) {
  if (fork_depth() > 0) return 1;
  const int limit = thread_limit.load(std::memory_order_relaxed);
  return limit > 0 && limit < threads ? limit : threads;
}

// A value that is made at its first use and never destroyed. A local static variable does not do: if another
// thread is making its value during a fork, the variable's guard stays locked in the child.
template <class T>
class MadeOnce {
 public:
  constexpr explicit MadeOnce(T (*make)()) : make_(make) {}

  const T& get() {
    if (const T* made = made_.load(std::memory_order_acquire)) return *made;
    const auto lock = lock_shared_state();
    if (made_.load(std::memory_order_relaxed) == nullptr)
      made_.store(new T(make_()), std::memory_order_release);
    return *made_.load(std::memory_order_relaxed);
  }

 private:
  T (*make_)();
  std::atomic<const T*> made_ = nullptr;
};

}  // namespace kintsugi::core
