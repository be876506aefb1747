// Executes calls on devices: of matrices in device memory, and of matrices in host memory.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engines/cuda/device.hpp"
#include "execute/execute.hpp"
#include "planner/plan.hpp"

namespace kintsugi::core {

// Executes calls whose matrices are in device memory. Ranges, selection, split, multiply and recombine are
// steps in a queue.

// Puts all steps of the call into the queue. Waits for the device only if the queue is of kind host. The
// device writes counts to operands.device_report.
void execute_on_device(const Plan& plan, const Operands& operands, Report& report);

// One group of a call with several: a batch, with its plan.
struct GroupCall {
  std::shared_ptr<const Plan> plan;
  Operands operands;
};

// True if one launch may compute the group with others, by bf16x6-direct, whose bits it has alone.
bool may_share_launch(const GroupCall& group);

// A group and, if one launch may compute it with others, its plan for that, by bf16x6-direct.
struct PlannedGroup {
  GroupCall alone;
  std::shared_ptr<const Plan> plan_to_share;
};

// Returns the groups that one launch should compute, and takes their plans from `groups`: all that may share
// it, if they have the same queue, and if that is expected to take less time than each alone.
std::vector<GroupCall> take_groups_of_one_launch(std::span<PlannedGroup> groups);

// Computes all groups by one launch in `queue`. The device writes its counts, of all products, to
// `device_report`. Fails before it writes to C. Precondition: may_share_launch() of every group.
void execute_groups(std::span<const GroupCall> groups, const Queue& queue, DeviceReport* device_report,
                    Report& report);

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

// ---------------------------------------------------------------- matrices in host memory

// For a named engine with devices: copies each batch item to the device without gaps, multiplies there, and
// copies C back. Before that the host finds the ranges and adapts the program, as it does for products on the
// host. Returns when C is complete. C of a batch item is written only after its product has succeeded.
void stage(const Plan& plan, const Operands& operands, Report& report);

// Executes an offloaded plan, whose matrices may be larger than a device's memory. If devices fail, the host
// computes the elements of C that they have not computed, and the report has the reason. Returns when C is
// complete.
void offload(const Plan& plan, const Operands& operands, Report& report);

}  // namespace kintsugi::core
