// Timing by the host's clock, and what contestants on a device have in common.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/contestant.hpp"

namespace kintsugi::tools {

// Returns the fastest of the runs that fit into 10 ms.
Round time_on_host(const std::function<void()>& run);

// Value of all bytes of a NaN, FP32 or FP64, with which C is filled in device memory.
inline constexpr int byte_of_nan = 0xff;

// Times calls from call to return that put work into a device's stream and do not wait for it.
class CallTimer {
 public:
  // `problems` is the number of different problems whose calls take turns.
  explicit CallTimer(std::int64_t problems) : problems_(problems) {}

  // Returns the mean time of some calls call(i), call(i + 1), ..., where i goes on from the last time().
  // Untimed calls come first; those of the first time() call every problem once, so that all plans exist. The
  // timed calls begin on an idle device.
  Round time(const lab::DeviceStream& stream, const std::function<void(std::int64_t call_index)>& call);

 private:
  // So few calls that no launch has to wait for the device: a stream queues up to 1024 kernels, and an
  // emulated call launches up to ten.
  static constexpr std::int64_t timed_calls = 100;

  std::int64_t problems_;
  std::int64_t next_call_ = 0;
};

}  // namespace kintsugi::tools
