// Operands in device memory that are split once.
#pragma once

#include <cstdint>
#include <vector>

#include "execute/device/matrix.hpp"
#include "execute/device/memory.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// An operand in device memory, split once: its slices by Plan::prepared_candidate(), with their ranges, and
// the original or a copy of it, which native products and special values are read from. Of schemes whose
// slices depend on the other operand ranges alone.
struct DevicePrepared {
  struct Item {
    VectorRange* ranges = nullptr;
    VectorNorm* norms = nullptr;  // where the rule scales by them
    RangeSummary* summary = nullptr;
    Slices slices;  // without data: none
  };

  explicit DevicePrepared(const Engine& of) : engine(&of), context(of.contexts()->current()) {}
  DevicePrepared(const DevicePrepared&) = delete;
  DevicePrepared& operator=(const DevicePrepared&) = delete;
  ~DevicePrepared();  // waits for the device

  const Engine* engine;
  DeviceContext context;  // where its memory is
  DeviceMatrix matrix;
  OperandStorage storage;
  std::int64_t count = 0;   // batch items that it holds; one serves any batch
  SplitRule rule{};         // of the slices, where there are any
  std::vector<Item> items;  // of the batch, behind each other in memory; none for native products alone
  DeviceBuffer copy;        // empty where the original is borrowed
  DeviceBuffer memory;
};

Prepared prepare_on_device(const Plan& plan, Side side, const void* data, bool borrow);

}  // namespace kintsugi::core
