// Memory of fused calls: calls whose emulations a device computes from slices to C in one kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory.hpp"
#include "engines/device_engine.hpp"
#include "planner/plan.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

// True if a device computes every emulation of the plan from slices to C in one kernel.
bool is_fused(const Plan& plan);

// Candidates of the plan except the native product.
std::span<const Candidate> emulations(const Plan& plan);

// True if one block is all of C.
bool covers_all(const Plan& plan, const Blocking& blocking);

// Returns the number of batch items that one launch multiplies.
std::int64_t items_at_once(const Plan& plan, const Blocking& blocking);

// Slices of one batch item, or of one block of it if C is computed in blocks.
struct FusedSlices {
  Slices a;
  Slices b;

  std::size_t bytes() const { return a.bytes() + b.bytes(); }
};
FusedSlices fused_slices(const Plan& plan, const Candidate& candidate, const Blocking& blocking);

// All memory of a call, for items_at_once() batch items.
struct FusedMemory {
  VectorRange* rows;
  VectorRange* columns;
  MergedSummary* row_summaries;  // nullptr if the selection reads the ranges of all rows, since they are few
  MergedSummary* column_summaries;  // nullptr if the selection reads the ranges of all columns
  DeviceSelection* selections;
  std::byte* scratch;       // large enough for every candidate
  DeviceCounters counters;  // counters in `scratch` of the candidate with the most counters
  std::byte* slices;        // large enough for every candidate
};
FusedMemory lay_out_fused(const Plan& plan, const Blocking& blocking, Workspace& workspace);

}  // namespace kintsugi::core
