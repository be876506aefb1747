// Processor time of all threads of the program, for measurements that other programs on the machine disturb
// less.
#pragma once

#include <ctime>

namespace kintsugi {

inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace kintsugi
