#include "base/fork.hpp"

#include <pthread.h>

#include <new>

namespace kintsugi::core {

namespace {

std::recursive_mutex shared_state;
int depth = 0;

// A recursive mutex knows its owner by a number that is another one in the child: there it is made anew.
void begin_in_child() {
  new (&shared_state) std::recursive_mutex;
  ++depth;
}

[[maybe_unused]] const int registered =
    ::pthread_atfork([] { shared_state.lock(); }, [] { shared_state.unlock(); }, begin_in_child);

}  // namespace

std::unique_lock<std::recursive_mutex> lock_shared_state() { return std::unique_lock(shared_state); }

int fork_depth() { return depth; }

}  // namespace kintsugi::core
