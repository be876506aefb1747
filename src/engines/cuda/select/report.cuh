// What an entry's choice adds to the report.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

__device__ inline void count(std::int64_t& counter, std::int64_t number = 1) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&counter), static_cast<unsigned long long>(number));
}

// Calls in several streams may add to one report.
__device__ inline void add_to_report(DeviceReport& report, const DeviceChoice& choice) {
  switch (choice.candidate) {
    case DeviceChoice::scaled: count(report.scaled); return;
    case DeviceChoice::none: count(report.unreachable); break;
    default: count(report.entries[choice.candidate]);
  }
  if (!choice.a.finite || !choice.b.finite) count(report.special);
  atomicMax(&report.largest_span_a, choice.a.largest_span);
  atomicMax(&report.largest_span_b, choice.b.largest_span);
}

}  // namespace kintsugi::core::cuda
