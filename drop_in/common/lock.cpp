#include "lock.hpp"

#include <pthread.h>

#include <cstddef>
#include <new>

namespace kintsugi::drop_in {

namespace {

std::recursive_mutex making;
bool forked = false;

void before_fork() {
  making.lock();
  for (ForkSafeMutex* mutex : fork_safe_mutexes()) mutex->lock();
}

void unlock_all() {
  // clang 14 does not compile std::views::reverse of a span with GCC 12's headers.
  const auto mutexes = fork_safe_mutexes();
  for (std::size_t i = mutexes.size(); i > 0; --i) mutexes[i - 1]->unlock();
}

void in_parent() {
  unlock_all();
  making.unlock();
}

// Constructs `making` anew instead of unlocking it. A recursive mutex knows its owner by the thread number,
// which is different in the child.
void in_child() {
  forked = true;
  forget_record();
  unlock_all();
  new (&making) std::recursive_mutex;
}

[[maybe_unused]] const int registered = ::pthread_atfork(before_fork, in_parent, in_child);

}  // namespace

std::unique_lock<std::recursive_mutex> lock_making() { return std::unique_lock(making); }

bool is_forked_child() { return forked; }

}  // namespace kintsugi::drop_in
