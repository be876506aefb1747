// The Ozaki scheme (Algorithms 1 to 3 of dgemm-tc) on matrices in device memory: planner/error_free.hpp as
// steps in a queue.
#pragma once

#include <cstddef>

#include "base/memory.hpp"
#include "engines/device_engine.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// One entry of the batch, whose ranges are known and whose choice is made; the report is not told of it yet.
struct DeviceErrorFreeTask {
  const Plan& plan;
  const Blocking& blocking;
  Queue queue;
  DeviceSide a;
  DeviceSide b;
  DeviceMatrix c;
  DeviceScalars scalars;
  DeviceChoice* choice;
  DeviceReport* report;
};

// Slices of each operand that are made and multiplied, whatever the data ask for: nobody waits to know.
int device_slices(const Plan& plan);

// Bytes of workspace, exactly.
std::size_t device_error_free_bytes(const Plan& plan, const Blocking& blocking);

// C, but for entries whose choice is another than the first candidate. Where the data ask for more slices
// than there are, the choice becomes DeviceChoice::none.
void multiply_error_free(const DeviceErrorFreeTask& task, Workspace workspace);

}  // namespace kintsugi::core
