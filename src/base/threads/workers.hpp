// Number of threads of a loop.
#pragma once

#include <cstdint>

namespace kintsugi::core {

// Number of threads for a loop over `pieces` pieces of work. It is at most one per piece, because libgomp
// ends the program if it cannot create a thread. It is 1 in a forked child, and in a ShortCall on a busy
// machine.
int workers_for(std::int64_t pieces, int threads);

// Marks a call whose loops take less than a time slice of the scheduler, as long as the object lives.
//
// A parallel loop ends when its slowest thread has ended; until then OpenMP's other threads spin. If another
// program wants the cores, the scheduler may take one of the threads off its core for a time slice. Then one
// parallel loop takes longer than all loops of the call would take on one thread. The class therefore reads
// how often the scheduler preempted the calling thread. After a preemption, loops of short calls have one
// thread for a while.
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
