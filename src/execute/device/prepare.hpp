// Operands in device memory that are split once and used in many calls.
#pragma once

#include <cstdint>
#include <vector>

#include "execute/device/memory.hpp"
#include "execute/execute.hpp"
#include "planner/device_call.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// A prepared operand in device memory. It has ranges and slices for Plan::prepared_candidate(). If the
// scheme's slices depend on the other operand, it has only ranges. It also has the original or a copy, which
// native products read, and from which special values are computed.
struct DevicePrepared {
  struct Item {
    VectorRange* ranges = nullptr;
    VectorNorm* norms = nullptr;       // set if the rule scales by norms
    MergedSummary* summary = nullptr;  // summary of the ranges
    Slices slices;                     // no slices if data is null
  };

  explicit DevicePrepared(const Engine& used) : engine(&used), context(cuda::current_context()) {}
  DevicePrepared(const DevicePrepared&) = delete;
  DevicePrepared& operator=(const DevicePrepared&) = delete;
  ~DevicePrepared();  // waits for the device

  const Engine* engine;
  DeviceContext context;  // context of its memory
  DeviceMatrix matrix;    // the borrowed original, or `copy`
  OperandStorage storage;
  std::int64_t count = 0;   // number of batch items; if it is 1, the item serves every item of a batch
  SplitRule rule{};         // split rule of the slices, if there are any
  std::vector<Item> items;  // batch items, contiguous in memory; none if only native products use it
  DeviceBuffer copy;        // copy of the original; empty if the original is borrowed
  DeviceBuffer memory;      // memory of the items' ranges, norms, summaries and slices
};

// Splits an operand in device memory on the plan's queue (prepare() of execute/execute.hpp).
Prepared prepare_on_device(const Plan& plan, Side side, const void* data, Original original);

}  // namespace kintsugi::core
