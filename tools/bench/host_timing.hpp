// Timing by the host's clock, and common parts of contestants on a device.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/contestant.hpp"

namespace kintsugi::tools {

// Returns the fastest of the runs that fit into 10 ms.
Round time_on_host(const std::function<void()>& run);

// C is filled with this byte in device memory, which makes every element a NaN.
inline constexpr int byte_of_nan = 0xff;

// Times calls that put work into a device's stream, from the call to its return. The calls do not wait for
// the work.
class CallTimer {
 public:
  // `problems`: number of different problems whose calls take turns.
  explicit CallTimer(std::int64_t problems) : problems_(problems) {}

  // Returns the mean time of several calls call(i), call(i + 1), ... The index i continues from the last
  // time(). Untimed calls come first. In the first time() they call every problem once, so that all plans
  // exist. The timed calls begin on an idle device.
  Round time(const measure::DeviceStream& stream, const std::function<void(std::int64_t call_index)>& call);

 private:
  // A stream queues up to 1024 kernels, and an emulated call launches up to ten. With 100 calls no launch
  // waits for the device.
  static constexpr std::int64_t timed_calls = 100;

  std::int64_t problems_;
  std::int64_t next_call_ = 0;
};

}  // namespace kintsugi::tools
