// Memory of calls whose emulations a device computes from slices to C in one kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory.hpp"
#include "engines/device_engine.hpp"
#include "planner/plan.hpp"
#include "splits/slices.hpp"

namespace kintsugi::core {

// Whether all emulations of a plan are computed so.
bool is_fused(const Plan& plan);

// The plan's candidates but for the native product.
std::span<const Candidate> emulations(const Plan& plan);

// Whether one block is all of C.
bool covers_all(const Plan& plan, const Blocking& blocking);

// Batch items that are multiplied together.
std::int64_t items_at_once(const Plan& plan, const Blocking& blocking);

// Slices of one batch item, or of one block of it where not all of it is multiplied at once.
struct FusedSlices {
  Slices a;
  Slices b;

  std::size_t bytes() const { return a.bytes() + b.bytes(); }
};
FusedSlices fused_slices(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// All memory of a call, for items_at_once().
struct FusedMemory {
  VectorRange* rows;
  VectorRange* columns;
  DeviceSelection* selections;
  std::byte* scratch;  // as much as the candidate that needs most
  std::byte* slices;   // of the candidate that has the largest
};
FusedMemory lay_out_fused(const Plan& plan, const Blocking& blocking, Workspace& workspace);

}  // namespace kintsugi::core
