// What keeps the library usable in the child of a fork, where of all threads the forking one alone lives on.
#pragma once

#include <atomic>
#include <mutex>

namespace kintsugi::core {

// Held while the environment is read or changed, or anything else that the whole program shares. A fork waits
// for it, so that a child finds all of that whole and the lock free.
std::unique_lock<std::recursive_mutex> lock_shared_state();

// 0 in the process that loaded the library, one more in a child of it, and so on.
int fork_depth();

// How many threads a call may have that was to have `threads`: in a child one, since GNU OpenMP waits for
// ever there for the threads that the forking one had.
inline int usable_threads(int threads) { return fork_depth() == 0 ? threads : 1; }

// A value that is made at its first use and never destroyed. A local static would not do: its guard stays
// locked in the child of a fork that happens while another thread makes the value.
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
