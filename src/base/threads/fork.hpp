// Functions that keep the library usable in the child of a fork, in which only the forking thread exists.
#pragma once

#include <atomic>
#include <mutex>

namespace kintsugi::core {

// Locks state that the whole program shares, such as the environment. A fork waits for this lock, so the
// child finds the state consistent and the lock free.
std::unique_lock<std::recursive_mutex> lock_shared_state();

// 0 in the process that loaded the library, 1 in its child, 2 in a child of the child, and so on.
int fork_depth();

// Number of threads for a call that may have `threads` threads. It is 1 in a child process: there GNU OpenMP
// would wait forever for threads that only the parent has.
inline int usable_threads(int threads) { return fork_depth() == 0 ? threads : 1; }

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
