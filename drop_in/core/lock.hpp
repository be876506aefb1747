// Mutexes that are free in the child of a fork, so that the library stays usable there.
#pragma once

#include <atomic>
#include <mutex>

namespace kintsugi::drop_in {

// Locks the mutex that all MadeOnce objects lock while they make their values. A fork waits until it is free.
std::unique_lock<std::recursive_mutex> lock_making();

// A value that is made at its first use. It is never destroyed, since another library's destructor may still
// call a product. A local static variable is no alternative: the child of a fork may inherit its guard
// locked.
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

// A mutex that a fork waits for, so that the mutex is free in the child.
class ForkSafeMutex {
 public:
  constexpr ForkSafeMutex() = default;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// A thread that locks several of these mutexes locks them in this order.
extern ForkSafeMutex sites_mutex;
extern ForkSafeMutex decisions_mutex;
extern ForkSafeMutex pools_mutex;  // memory pools of devices
extern ForkSafeMutex record_mutex;

// True in the child of a fork, false in the process that loaded the library.
bool is_forked_child();

}  // namespace kintsugi::drop_in
