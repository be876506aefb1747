// Locks that a fork waits for, so that the library stays usable in the child.
#pragma once

#include <atomic>
#include <mutex>
#include <span>

namespace kintsugi::drop_in {

// Returns the lock that is held while a MadeOnce makes its value; a fork waits until it is free.
std::unique_lock<std::recursive_mutex> lock_making();

// A value that is made at its first use and never destroyed, since products may come as late as from another
// library's destructor. A local static would not do: its guard stays locked in the child of a fork.
template <class T>
class MadeOnce {
 public:
  constexpr explicit MadeOnce(T (*make)()) : make_(make) {}

  const T& get() {
    if (const T* made = made_.load(std::memory_order_acquire)) return *made;
    const auto lock = lock_making();
    if (made_.load(std::memory_order_relaxed) == nullptr)
      made_.store(new T(make_()), std::memory_order_release);
    return *made_.load(std::memory_order_relaxed);
  }

 private:
  T (*make_)();
  std::atomic<const T*> made_ = nullptr;
};

// A mutex that a fork waits for, and that is free in the child.
class ForkSafeMutex {
 public:
  constexpr ForkSafeMutex() = default;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Each drop-in defines these two: its mutexes in the order in which calls take them, and the function that
// empties its record in the child of a fork.
std::span<ForkSafeMutex* const> fork_safe_mutexes();
void forget_record();

// True in the child of a fork, false in the process that loaded the library.
bool is_forked_child();

}  // namespace kintsugi::drop_in
