// Executes calls whose matrices are in device memory. Ranges, selection, split, multiply and recombine are
// steps in a queue.
#pragma once

#include "engines/cuda/device.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Puts all steps of the call into the queue. Waits for the device only if the queue is of kind host. The
// device writes counts to operands.device_report.
void execute_on_device(const Plan& plan, const Operands& operands, Report& report);

// Checks that plan, stream and prepared operands belong to the calling thread's current context. Both
// functions fail with invalid_argument before anything is put into the queue.
void check_caller(const Plan& plan, const Queue& queue);
void check_caller(const Plan& plan, const Operands& operands, const Queue& queue);

// Device memory of a caller: its device, and the context that it belongs to (nullptr: to none).
struct DevicePlace {
  int device;
  void* context;
};

// Makes a context current during its lifetime in which that memory can be used, unless the current one can
// use it. Does nothing if no engine uses such devices.
class PlaceScope {
 public:
  explicit PlaceScope(const DevicePlace& place);
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;
  ~PlaceScope() {
    if (entered_) cuda::leave_context();
  }

 private:
  bool entered_ = false;
};

}  // namespace kintsugi::core
