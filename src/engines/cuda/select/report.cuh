// Addition of a batch item's selection to the report.
#pragma once

#include "engines/device.hpp"

namespace kintsugi::core::cuda {

// Adds to a counter of the report atomically.
__device__ inline void count(std::int64_t& counter, std::int64_t increment = 1) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&counter), static_cast<unsigned long long>(increment));
}

// Adds what a selection says of the operands to the report.
__device__ inline void add_ranges_to_report(DeviceReport& report, const DeviceSelection& selection) {
  if (!selection.a.finite || !selection.b.finite) count(report.special);
  atomicMax(&report.dynamic_range_a, selection.a.dynamic_range);
  atomicMax(&report.dynamic_range_b, selection.b.dynamic_range);
}

// Adds a batch item's selection to the report. The additions are atomic, because calls in several streams may
// add to one report.
__device__ inline void add_to_report(DeviceReport& report, const DeviceSelection& selection) {
  switch (selection.candidate) {
    case DeviceSelection::scaled: count(report.scaled); return;
    case DeviceSelection::none: count(report.unreachable); break;
    default: count(report.items[selection.candidate]);
  }
  add_ranges_to_report(report, selection);
}

}  // namespace kintsugi::core::cuda
