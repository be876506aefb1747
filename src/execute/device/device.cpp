#include "execute/device/device.hpp"

#include <complex>

#include "engines/device_engine.hpp"
#include "engines/device_moduli.hpp"
#include "execute/allocate.hpp"
#include "execute/device/caller.hpp"
#include "execute/device/candidates/fused.hpp"
#include "execute/device/candidates/native.hpp"
#include "execute/device/items.hpp"
#include "execute/device/matrix.hpp"
#include "execute/device/memory.hpp"
#include "execute/device/operands.hpp"
#include "planner/candidates/device.hpp"
#include "planner/workspace/device.hpp"

namespace kintsugi::core {

namespace {

const DevicePrepared* device_part(const Prepared* prepared) {
  return prepared == nullptr ? nullptr : prepared->device.get();
}

DeviceMatrix operand(const Plan& plan, Side side, const void* data, const Prepared* prepared) {
  return prepared != nullptr ? prepared->device->matrix : device_operand(plan.problem, side, data);
}

OperandStorage storage_of(const Plan& plan, Side side, const DevicePrepared* prepared) {
  return prepared != nullptr ? prepared->storage : operand_storage(plan.problem, side);
}

DeviceOperands operands_of(const Plan& plan, const Operands& operands) {
  // -0 is replaced by 0 for beta: cuBLAS takes -0 as non-zero and reads C.
  const std::complex<double> beta = operands.beta.is_zero() ? 0 : operands.beta.value();
  return {.a = operand(plan, Side::a, operands.a, operands.prepared_a),
          .b = operand(plan, Side::b, operands.b, operands.prepared_b),
          .c = device_result(plan.problem, operands.c),
          .scalars = {operands.alpha.value(), beta, operands.device_alpha, operands.device_beta},
          .prepared_a = device_part(operands.prepared_a),
          .prepared_b = device_part(operands.prepared_b),
          .report = operands.device_report};
}

void scale_all(const Plan& plan, const DeviceOperands& operands, const Queue& queue) {
  for (std::int64_t item = 0; item < plan.problem.batch_count; ++item)
    plan.engine->device()->scale(queue, operands.c, item, operands.scalars, {});
}

void multiply_natively(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                       const Blocking& blocking, const Workspace& workspace) {
  multiply_natively({.plan = plan,
                     .queue = queue,
                     .blocking = blocking,
                     .a = operands.a,
                     .b = operands.b,
                     .c = operands.c,
                     .storage_a = storage_of(plan, Side::a, operands.prepared_a),
                     .storage_b = storage_of(plan, Side::b, operands.prepared_b),
                     .scalars = operands.scalars},
                    workspace);
}

// Returns the workspace of a call without one; it has no memory if there is not enough. Graphs keep their
// workspaces. So the plan's limit holds for all graphs together, and a captured call beyond it fails: smaller
// blocks of C would only make the last captured calls slow.
DeviceBuffer allocate_in_queue(const Plan& plan, const Queue& queue, std::size_t bytes) {
  const std::size_t limit = plan.request.workspace_limit;
  DeviceBuffer buffer(plan, queue, bytes, limit);
  const bool may_be_limited = limit > 0 && !plan.is_native() && plan.allocator.allocate == nullptr;
  if (buffer.pointer() == nullptr && bytes > 0 && may_be_limited &&
      plan.engine->contexts()->is_captured(queue)) {
    fail(Status::out_of_memory,
         "the stream is being captured, and its graph needs {} bytes of workspace: more than the device has "
         "left, or than the limit of {} bytes leaves, which all graphs share (workspace_limit)",
         bytes, limit);
  }
  return buffer;
}

void run(const Plan& plan, const Operands& operands, const Queue& queue, Report& report) {
  const bool allocates = operands.workspace == nullptr;
  DeviceBuffer memory;
  if (allocates && multiplies_by_strassen(plan)) {
    memory = DeviceBuffer(plan, queue, workspace_bytes(plan, report.blocking), plan.request.workspace_limit);
    if (memory.pointer() == nullptr) return run(without_strassen(plan), operands, queue, report);
  } else if (allocates) {
    memory = allocate_workspace(plan, report.blocking, "the device's allocator",
                                [&](std::size_t bytes) { return allocate_in_queue(plan, queue, bytes); });
  } else {
    check_workspace(plan, operands);
  }
  report.workspace_bytes = allocates ? memory.bytes() : plan.workspace_bytes;
  const Workspace workspace(allocates ? memory.pointer() : operands.workspace, report.workspace_bytes);
  const DeviceOperands on_device = operands_of(plan, operands);
  if (plan.is_native()) return multiply_natively(plan, on_device, queue, report.blocking, workspace);
  const auto multiply = is_fused(plan) ? multiply_fused : multiply_items;
  if (operands.launches_singly) return multiply(plan, on_device, queue, report.blocking, workspace);
  plan.engine->device()->launch_together(
      queue, [&] { multiply(plan, on_device, queue, report.blocking, workspace); });
}

}  // namespace

void execute_on_device(const Plan& plan, const Operands& operands, Report& report) {
  const DeviceEngine& engine = *plan.engine->device();
  const Problem& problem = plan.problem;
  const Queue queue = queue_of(plan, operands);
  check_caller(plan, operands, queue);
  engine.prepare();
  const bool empty = problem.m == 0 || problem.n == 0 || problem.batch_count == 0;
  const bool only_scales = problem.k == 0 || (!problem.device_scalars && operands.alpha.is_zero());
  const bool selection_overwrites_report = !empty && !only_scales && begins_with_selection(plan);
  if (operands.device_report != nullptr && !selection_overwrites_report)
    engine.clear(queue, operands.device_report, sizeof(LongDeviceReport));
  if (empty) return;
  if (only_scales) {
    report.items_scaled = problem.batch_count;
    scale_all(plan, operands_of(plan, operands), queue);
  } else {
    if (plan.is_native()) report.items[0] = problem.batch_count;
    run(plan, operands, queue, report);
  }
  if (queue.kind == QueueKind::host) engine.synchronize(queue);
}

}  // namespace kintsugi::core
