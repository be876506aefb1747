// A stream that is being captured forbids every wait for the whole device (CUDA driver API, stream
// management), which calls of other threads may do: a report's, the freeing of a prepared operand. So a
// capture is alone.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace kintsugi::test {

class CaptureGate {
 public:
  std::shared_lock<std::shared_mutex> share() {
    const std::scoped_lock turn(turn_);
    return std::shared_lock(calls_);
  }
  std::unique_lock<std::shared_mutex> hold_alone() {
    const std::scoped_lock turn(turn_);  // those that come later wait: no stream of calls keeps a capture out
    return std::unique_lock(calls_);
  }

 private:
  std::mutex turn_;
  std::shared_mutex calls_;
};

}  // namespace kintsugi::test
