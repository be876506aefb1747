#include "lock.hpp"

#include <pthread.h>

#include <new>

#include "record.hpp"

namespace kintsugi::blas {

constinit ForkSafeMutex sites_mutex;
constinit ForkSafeMutex decisions_mutex;
constinit ForkSafeMutex record_mutex;

namespace {

std::recursive_mutex making;
bool forked = false;

// Takes the locks in the order in which calls take them.
void before_fork() {
  making.lock();
  sites_mutex.lock();
  decisions_mutex.lock();
  record_mutex.lock();
}

void in_parent() {
  record_mutex.unlock();
  decisions_mutex.unlock();
  sites_mutex.unlock();
  making.unlock();
}

// A recursive mutex identifies its owner by a thread number, which is another one in the child.
void in_child() {
  forked = true;
  forget_record();
  record_mutex.unlock();
  decisions_mutex.unlock();
  sites_mutex.unlock();
  new (&making) std::recursive_mutex;
}

[[maybe_unused]] const int registered = ::pthread_atfork(before_fork, in_parent, in_child);

}  // namespace

std::unique_lock<std::recursive_mutex> lock_making() { return std::unique_lock(making); }

bool is_forked_child() { return forked; }

}  // namespace kintsugi::blas
