// Lets many calls run at once, or one capture alone. While a stream is captured, no thread may wait for the
// whole device (CUDA driver API, stream management), as other calls do to read a report or to free a prepared
// operand.
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
    const std::scoped_lock turn(turn_);  // calls that come later wait, so that the capture gets its turn
    return std::unique_lock(calls_);
  }

 private:
  std::mutex turn_;
  std::shared_mutex calls_;
};

}  // namespace kintsugi::test
