#include "base/threads/fork.hpp"

#include <pthread.h>

#include <new>

namespace kintsugi::core {

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
