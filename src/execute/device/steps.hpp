// Puts the steps of a plan into a queue (planner/steps.hpp).
#pragma once

#include <span>

#include "base/memory.hpp"
#include "engines/cuda/step_data.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

struct DevicePrepared;  // execute/device/prepare.hpp

// Operands and result of a call.
struct DeviceOperands {
  DeviceMatrix a;
  DeviceMatrix b;
  DeviceMatrix c;
  DeviceScalars scalars;
  const DevicePrepared* prepared_a = nullptr;
  const DevicePrepared* prepared_b = nullptr;
  DeviceReport* report = nullptr;
};

// Puts the steps of a plan that emulates into the queue, for all batch items. The steps of all candidates are
// put there, since the device selects; the kernels of a candidate that is not selected return at once.
// `steps` were made for `blocking`; the workspace has workspace_bytes() bytes.
void run_in_queue(const Plan& plan, std::span<const Step> steps, const Blocking& blocking,
                  const DeviceOperands& operands, const Queue& queue, Workspace workspace);

}  // namespace kintsugi::core
