#include "execute/device/device.hpp"

#include <complex>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/cuda/cuda_driver.hpp"
#include "base/status.hpp"
#include "engines/cuda/common/launch_graph.hpp"
#include "engines/cuda/gemm/direct_groups.hpp"
#include "engines/cuda/steps.hpp"
#include "execute/device/memory.hpp"
#include "execute/device/prepare.hpp"
#include "execute/device/steps.hpp"
#include "planner/candidates.hpp"
#include "planner/device_call.hpp"
#include "planner/expected_times.hpp"
#include "planner/memory.hpp"
#include "planner/steps.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

void check_prepared(const Prepared* prepared, const char* name) {
  if (prepared == nullptr || cuda::reaches(prepared->device->context)) return;
  const int prepared_device = prepared->device->context.device;
  const int current = cuda::current_context().device;
  if (prepared_device != current) {
    fail(Status::invalid_argument, "{} lies on {}, and {} is current", name,
         cuda::text_of_device(prepared_device), cuda::text_of_device(current));
  }
  fail(Status::invalid_argument, "{} lies in another context of {} than the current one", name,
       cuda::text_of_device(prepared_device));
}

}  // namespace

// A plan has no device memory, so it can run in every context of its device. The first call in a context
// creates a handle of cuBLAS, which allocates memory and would break a capture of a stream.
void check_caller(const Plan& plan, const Queue& queue) {
  const DeviceContext current = cuda::current_context();
  if (current.device != plan.context.device) {
    fail(Status::invalid_argument,
         "the plan was made for {}, and {} is current: every device needs its own plan",
         cuda::text_of_device(plan.context.device), cuda::text_of_device(current.device));
  }
  cuda::check_stream(queue);
  if (current == plan.context || !cuda::is_captured(queue)) return;
  fail(Status::invalid_argument,
       "the stream is being captured, and the plan was made in another context of {} than the current one: "
       "make it in this one, before the capture",
       cuda::text_of_device(current.device));
}

void check_caller(const Plan& plan, const Operands& operands, const Queue& queue) {
  check_caller(plan, queue);
  check_prepared(operands.prepared_a, "prepared_a");
  check_prepared(operands.prepared_b, "prepared_b");
}

// A driver that is too old, or has no device, cannot be asked for contexts. Planning then fails and says why.
PlaceScope::PlaceScope(const DevicePlace& place) {
  if (!cuda::driver().reason.empty()) return;
  entered_ = cuda::enter_for_memory(place.device, place.context);
}

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
  return {
      .a = operand(plan, Side::a, operands.a, operands.prepared_a),
      .b = operand(plan, Side::b, operands.b, operands.prepared_b),
      .c = device_result(plan.problem, operands.c),
      .scalars = {operands.alpha.value(), beta, operands.device_alpha, operands.device_beta, plan.rounding},
      .prepared_a = device_part(operands.prepared_a),
      .prepared_b = device_part(operands.prepared_b),
      .report = operands.device_report};
}

void scale_all(const Plan& plan, const DeviceOperands& operands, const Queue& queue) {
  for (std::int64_t item = 0; item < plan.problem.batch_count; ++item)
    cuda::scale(queue, operands.c, item, operands.scalars, {});
}

// Returns the op of DeviceBlasProduct for an operand: 0, 1, 2 for N, T, C of BLAS. Returns nothing for a
// conjugate without transposition, which BLAS lacks. `transposed`: the operand is stored transposed.
std::optional<int> blas_op(const DeviceMatrix& matrix, bool transposed) {
  const bool conjugated = matrix.complex() && matrix.conjugated;
  if (!transposed) return conjugated ? std::nullopt : std::optional(0);
  return conjugated ? 2 : 1;
}

// Multiplies by the vendor library. A row-major C is computed as the column-major C^T = B^T A^T. Returns
// false and does nothing if the library cannot compute the product, as for some prepared operands: a
// conjugate without transposition, and pointers combined with strides.
bool multiply_by_vendor(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                        const Blocking& blocking, std::byte* scratch) {
  const Problem& problem = plan.problem;
  const DeviceMatrix& c = operands.c;
  const OperandStorage storage_a = storage_of(plan, Side::a, operands.prepared_a);
  const OperandStorage storage_b = storage_of(plan, Side::b, operands.prepared_b);
  const bool swaps = problem.layout == Layout::row_major;
  const DeviceMatrix& left = swaps ? operands.b : operands.a;
  const DeviceMatrix& right = swaps ? operands.a : operands.b;
  const OperandStorage& storage_left = swaps ? storage_b : storage_a;
  const OperandStorage& storage_right = swaps ? storage_a : storage_b;
  const auto op_a = blas_op(left, storage_left.along_k);
  const auto op_b = blas_op(right, !storage_right.along_k);
  if (!op_a || !op_b || left.pointers != c.pointers || right.pointers != c.pointers) return false;
  return cuda::multiply_by_vendor(queue,
                                  {.type = c.type,
                                   .op_a = *op_a,
                                   .op_b = *op_b,
                                   .m = left.rows,
                                   .n = right.rows,
                                   .k = problem.k,
                                   .a = left.data,
                                   .b = right.data,
                                   .c = const_cast<void*>(c.data),
                                   .lda = storage_left.ld,
                                   .ldb = storage_right.ld,
                                   .ldc = problem.ldc,
                                   .pointers = c.pointers,
                                   .batch_stride_a = left.batch_stride,
                                   .batch_stride_b = right.batch_stride,
                                   .batch_stride_c = c.batch_stride,
                                   .batch_count = problem.batch_count,
                                   .scalars = operands.scalars,
                                   .scratch_bytes = blocking.native_scratch_bytes,
                                   .keeps_contract = plan.contract.coefficient != 0},
                                  scratch);
}

// Puts the native products of all batch items into the queue: one call of the vendor library and nothing
// else. A kernel of Kintsugi multiplies where the library has no such product, or may not keep the plan's
// contract.
void multiply_natively(const Plan& plan, const DeviceOperands& operands, const Queue& queue,
                       const Blocking& blocking, Workspace workspace) {
  if (multiply_by_vendor(plan, operands, queue, blocking, workspace.take(blocking.native_scratch_bytes)))
    return;
  cuda::multiply_unsliced(queue, {.a = {.matrix = operands.a},
                                  .b = {.matrix = operands.b},
                                  .c = operands.c,
                                  .rows = operands.c.rows,
                                  .columns = operands.c.columns,
                                  .scalars = operands.scalars,
                                  .condition = {},
                                  .items = plan.problem.batch_count});
}

// Returns the blocking of a call without workspace. Graphs keep their workspaces, and the plan's limit holds
// for all graphs together. So a captured call takes a quarter of the limit at most, if its blocks can be so
// small. The blocking depends on nothing else: a program that captures a call again to update an executable
// graph must get the same kernels.
Blocking blocking_of_call(const Plan& plan, const Queue& queue) {
  constexpr std::size_t shares_of_limit = 4;
  const std::size_t share = plan.request.workspace_limit / shares_of_limit;
  const bool is_large = share > 0 && plan.workspace_bytes > share;
  if (!is_large || plan.is_native() || plan.allocator.allocate != nullptr || !cuda::is_captured(queue))
    return plan.blocking;
  return blocking_within(plan, share).value_or(plan.blocking);
}

// Returns the workspace of a call without one; it has no memory if there is not enough. A captured call
// beyond the limit of all graphs fails: still smaller blocks of C would only make the last captured calls
// slow.
DeviceBuffer allocate_in_queue(const Plan& plan, const Queue& queue, std::size_t bytes) {
  const std::size_t limit = plan.request.workspace_limit;
  DeviceBuffer buffer(plan, queue, bytes, limit);
  const bool may_be_limited = limit > 0 && !plan.is_native() && plan.allocator.allocate == nullptr;
  if (buffer.pointer() == nullptr && bytes > 0 && may_be_limited && cuda::is_captured(queue)) {
    fail(Status::out_of_memory,
         "the stream is being captured, and its graph needs {} bytes of workspace: more than the device has "
         "left, or than the limit of {} bytes leaves, which all graphs share (workspace_limit)",
         bytes, limit);
  }
  return buffer;
}

// Sets the handle's report to zero in stream order.
void clear_report(const Operands& operands, const Queue& queue) {
  if (operands.device_report != nullptr) cuda::clear(queue, operands.device_report, sizeof(LongDeviceReport));
}

// Runs a plan whose product is not empty. The report is cleared last before the product: what fails earlier
// leaves that of the previous execution.
void run(const Plan& plan, const Operands& operands, const Queue& queue, Report& report) {
  const bool allocates = operands.workspace == nullptr;
  DeviceBuffer memory;
  if (allocates) {
    report.blocking = blocking_of_call(plan, queue);
    memory = allocate_workspace(plan, report.blocking, "the device's allocator",
                                [&](std::size_t bytes) { return allocate_in_queue(plan, queue, bytes); });
  } else {
    check_workspace(plan, operands);
  }
  report.workspace_bytes = allocates ? memory.bytes() : plan.workspace_bytes;
  const Workspace workspace(allocates ? memory.pointer() : operands.workspace, report.workspace_bytes);
  const cuda::KnownDevice known_device;  // from here on: an allocator may use other devices
  const DeviceOperands on_device = operands_of(plan, operands);
  const bool selection_overwrites_report = begins_with_selection(plan);
  if (!selection_overwrites_report) clear_report(operands, queue);
  if (plan.is_native()) return multiply_natively(plan, on_device, queue, report.blocking, workspace);
  const bool is_as_planned = report.blocking == plan.blocking;
  const std::vector<Step> smaller = is_as_planned ? std::vector<Step>{} : make_steps(plan, report.blocking);
  const std::span<const Step> steps = is_as_planned ? plan.steps : smaller;
  if (operands.launches_singly)
    return run_in_queue(plan, steps, report.blocking, on_device, queue, workspace);
  cuda::LaunchRecording recording(queue);
  run_in_queue(plan, steps, report.blocking, on_device, queue, workspace);
  recording.issue();
}

}  // namespace

void execute_on_device(const Plan& plan, const Operands& operands, Report& report) {
  const Problem& problem = plan.problem;
  const Queue queue = queue_of(plan, operands);
  check_caller(plan, operands, queue);
  // The plan's own context was prepared when the plan was made.
  if (!(cuda::current_context() == plan.context)) cuda::prepare_device();
  const bool empty = problem.m == 0 || problem.n == 0 || problem.batch_count == 0;
  const bool only_scales = problem.k == 0 || (!problem.device_scalars && operands.alpha.is_zero());
  if (empty) {
    if (operands.device_report == nullptr) return;
    clear_report(operands, queue);
  } else if (only_scales) {
    report.items_scaled = problem.batch_count;
    clear_report(operands, queue);
    scale_all(plan, operands_of(plan, operands), queue);
  } else {
    if (plan.is_native()) report.items[0] = problem.batch_count;
    run(plan, operands, queue, report);
  }
  if (queue.kind == QueueKind::host) cuda::synchronize(queue);
}

bool may_share_launch(const GroupCall& group) {
  const Problem& problem = group.plan->problem;
  const Operands& operands = group.operands;
  const bool is_plain = problem.memory == MemorySpace::device && problem.type == OperandType::f32 &&
                        !problem.complex && operands.prepared_a == nullptr &&
                        operands.prepared_b == nullptr && operands.workspace == nullptr;
  const bool is_empty = problem.m == 0 || problem.n == 0 || problem.k == 0 || problem.batch_count == 0;
  return is_plain && !is_empty && !problem.device_scalars && !operands.alpha.is_zero() &&
         cuda::takes_direct_group(problem.m, problem.n, problem.k, problem.batch_count);
}

namespace {

// Expected microseconds of the group alone, of which the device's times must be known.
double expected_alone(const PlannedGroup& group) {
  const Plan& plan = *group.alone.plan;
  const Plan& named = *group.plan_to_share;
  const auto times = plan.is_native() ? expected_device_times(named, named.candidates.front())
                                      : expected_device_times(plan, plan.candidates.front());
  if (!times) return std::numeric_limits<double>::infinity();
  return plan.is_native() ? times->native : times->emulated;
}

DeviceShape shape_of(const Plan& plan) {
  const Problem& problem = plan.problem;
  DeviceShape shape = fused_shape(plan, plan.candidates.front(), {.m = problem.m, .n = problem.n});
  shape.items = problem.batch_count;
  shape.is_aligned = has_aligned_lines(problem);
  return shape;
}

}  // namespace

std::vector<GroupCall> take_groups_of_one_launch(std::span<PlannedGroup> groups) {
  std::vector<PlannedGroup*> sharing;
  std::vector<DeviceShape> shapes;
  for (PlannedGroup& group : groups) {
    if (group.plan_to_share == nullptr) continue;
    sharing.push_back(&group);
    shapes.push_back(shape_of(*group.plan_to_share));
  }
  auto times = cuda::expected_group_times(shapes);
  double alone = 0;
  if (times) {
    // Groups that take less time alone than they would add to the launch do not share it.
    std::vector<PlannedGroup*> gaining;
    for (std::size_t g = 0; g < sharing.size(); ++g) {
      const double time = expected_alone(*sharing[g]);
      if (times->of_each[g] >= time) {
        times->together -= times->of_each[g];
        continue;
      }
      gaining.push_back(sharing[g]);
      alone += time;
    }
    sharing = std::move(gaining);
  }
  if (sharing.size() < 2) return {};
  const Queue& queue = sharing.front()->alone.operands.queue;
  std::int64_t products = 0;
  bool changes_scheme = false;
  for (const PlannedGroup* group : sharing) {
    const Queue& other = group->alone.operands.queue;
    if (other.kind != queue.kind || other.stream != queue.stream) return {};
    products += group->alone.plan->problem.batch_count;
    changes_scheme = changes_scheme || !is_direct(group->alone.plan->candidates.front().program);
  }
  const std::size_t limit = sharing.front()->alone.plan->request.workspace_limit;
  if (limit > 0 && cuda::direct_groups_bytes(products, std::ssize(sharing)) > limit) return {};
  if (times ? times->together >= alone : changes_scheme) return {};
  std::vector<GroupCall> calls;
  for (PlannedGroup* group : sharing) {
    calls.push_back({std::move(group->plan_to_share), group->alone.operands});
    group->alone.plan = nullptr;
  }
  return calls;
}

void execute_groups(std::span<const GroupCall> groups, const Queue& queue, DeviceReport* device_report,
                    Report& report) {
  const Plan& first = *groups.front().plan;
  std::int64_t products = 0;
  std::vector<DeviceOperands> operands;
  for (const GroupCall& group : groups) {
    check_caller(*group.plan, queue);
    products += group.plan->problem.batch_count;
    operands.push_back(operands_of(*group.plan, group.operands));
  }
  if (!(cuda::current_context() == first.context)) cuda::prepare_device();
  report.workspace_bytes = cuda::direct_groups_bytes(products, std::ssize(groups));
  const DeviceBuffer memory = allocate_in_queue(first, queue, report.workspace_bytes);
  if (memory.pointer() == nullptr) {
    fail(Status::out_of_memory,
         "the device's allocator has no {} bytes for the table of {} products in {} groups",
         report.workspace_bytes, products, groups.size());
  }
  const cuda::KnownDevice known_device;
  std::vector<cuda::DeviceGroup> on_device;
  for (const DeviceOperands& group : operands) {
    on_device.push_back({.tile = {.a = {.matrix = group.a},
                                  .b = {.matrix = group.b},
                                  .c = group.c,
                                  .rows = group.c.rows,
                                  .columns = group.c.columns,
                                  .scalars = group.scalars,
                                  .condition = {}},
                         .items = groups[on_device.size()].plan->problem.batch_count});
  }
  if (device_report != nullptr) cuda::clear(queue, device_report, sizeof(LongDeviceReport));
  {
    cuda::LaunchRecording recording(queue);
    cuda::launch_direct_groups(queue, on_device, device_report, static_cast<std::byte*>(memory.pointer()));
    recording.issue();
  }
  if (queue.kind == QueueKind::host) cuda::synchronize(queue);
}

}  // namespace kintsugi::core
