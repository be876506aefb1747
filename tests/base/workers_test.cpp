// Tests the number of workers of a loop: at most one per piece of work, and one in short calls while other
// threads need the cores.
#include "base/threads.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace kintsugi::core {
namespace {

TEST(Workers, AreAtMostTheNumberOfPiecesOrThreads) {
  EXPECT_EQ(workers_for(8, 4), 4);
  EXPECT_EQ(workers_for(3, 4), 3);
  EXPECT_EQ(workers_for(0, 4), 1);
  EXPECT_EQ(workers_for(8, 0), 1);
  const ShortCall call(false);
  EXPECT_EQ(workers_for(8, 4), 4);
}

void run_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) continue;
}

int workers_of_short_call() {
  const ShortCall call(true);
  return workers_for(8, 4);
}

// Runs another thread on the same core, so that the scheduler takes this thread off it.
TEST(Workers, ShortCallsHaveOneWhileAnotherThreadNeedsTheCore) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  cpu_set_t one_core;
  CPU_ZERO(&one_core);
  CPU_SET(core, &one_core);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one_core, &one_core), 0);
  std::atomic<bool> ends = false;
  std::thread rival([&] {
    while (!ends) continue;
  });
  {
    const ShortCall call(true);
    run_for(std::chrono::milliseconds(200));
  }
  const int workers = workers_of_short_call();
  const int workers_of_long_call = workers_for(8, 4);
  ends = true;
  rival.join();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(workers, 1);
  EXPECT_EQ(workers_of_long_call, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(workers_of_short_call(), 4) << "the machine counts as busy for a while only";
}

}  // namespace
}  // namespace kintsugi::core
