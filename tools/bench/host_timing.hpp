// Timing by the host's clock.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/contestant.hpp"

namespace kintsugi::tools {

// Returns the fastest of the runs that fit into 10 ms.
Round time_on_host(const std::function<void()>& run);

// Times calls on a device from call to return, which put work into a stream and do not wait for it.
class CallTimer {
 public:
  // `problems` is the number of different problems whose calls take turns.
  explicit CallTimer(std::int64_t problems) : problems_(problems) {}

  // Returns the mean time of some calls call(n), call(n + 1), ... on an idle device. The first time() calls
  // every problem once before, so that all plans exist.
  Round time(const lab::DeviceStream& stream, const std::function<void(std::int64_t)>& call);

 private:
  // So few that no launch has to wait for the device: a stream queues up to 1024 kernels, and an emulated
  // call launches up to ten.
  static constexpr std::int64_t calls = 100;

  std::int64_t problems_;
  std::int64_t next_ = 0;
};

}  // namespace kintsugi::tools
