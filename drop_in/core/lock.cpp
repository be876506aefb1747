#include "lock.hpp"

#include <pthread.h>

#include <cstddef>
#include <iterator>
#include <new>

#include "record.hpp"

namespace kintsugi::drop_in {

constinit ForkSafeMutex sites_mutex;
constinit ForkSafeMutex decisions_mutex;
constinit ForkSafeMutex pools_mutex;
constinit ForkSafeMutex record_mutex;

namespace {

std::recursive_mutex making;
bool forked = false;
constexpr ForkSafeMutex* in_order[] = {&sites_mutex, &decisions_mutex, &pools_mutex, &record_mutex};

void before_fork() {
  making.lock();
  for (ForkSafeMutex* mutex : in_order) mutex->lock();
}

void unlock_all() {
  for (std::size_t i = std::size(in_order); i > 0; --i) in_order[i - 1]->unlock();
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
