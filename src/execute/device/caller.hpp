// Contexts of callers: those of their matrices, and checks that plan, stream and prepared operands of a call
// belong to the calling thread's current context.
#pragma once

#include "engines/cuda/device.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Both functions fail with invalid_argument before anything is put into the queue.
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
