// Number of threads of a loop.
#pragma once

#include <cstdint>

namespace kintsugi::core {

// Number of threads for `pieces` pieces of work: at most one per piece, since no needless thread should be
// created (libgomp ends the program if it cannot create one); 1 in a forked child and in a ShortCall on a
// busy machine.
int workers_for(std::int64_t pieces, int threads);

// Marks, during its lifetime, the execution of a call whose loops take less than a time slice of the
// scheduler.
//
// A parallel loop ends when its last thread has ended, and OpenMP's threads spin until then. Where another
// program wants the cores, a thread that the scheduler has taken off its core comes back a time slice later,
// so that each of the call's loops may wait longer than all of them take on one thread. The scheduler counts
// how often it took the calling thread off its core; for a while after it has done so, loops of short calls
// have one thread.
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

}  // namespace kintsugi::core
