#include "execute/device/prepare.hpp"

#include <algorithm>
#include <memory>

#include "base/status.hpp"
#include "engines/cuda/steps.hpp"
#include "execute/device/device.hpp"

namespace kintsugi::core {

namespace {

// Returns the number of elements in memory from the first to the last element of a batch item, including
// gaps.
std::int64_t extent(const DeviceMatrix& matrix) {
  return (matrix.rows - 1) * matrix.row_stride + (matrix.columns - 1) * matrix.column_stride + 1;
}

// Copies every batch item with unchanged strides, and makes prepared.matrix refer to the copy.
void copy_original(const Plan& plan, std::int64_t count, DevicePrepared& prepared) {
  DeviceMatrix& matrix = prepared.matrix;
  if (matrix.pointers) {
    fail(
        Status::not_supported,
        "operands of a batch given by pointers cannot be copied, since only the device knows where they are: "
        "kintsugi_prepare_borrowed leaves them where they are");
  }
  const std::size_t bytes = element_bytes(matrix.type);
  const std::int64_t elements = matrix.rows == 0 || matrix.columns == 0 ? 0 : extent(matrix);
  prepared.copy =
      allocate_on_device(plan, array_bytes(count, elements, bytes), "a copy of a prepared operand");
  for (std::int64_t item = 0; item < count; ++item) {
    cuda::copy_on_device(
        plan.queue,
        static_cast<std::byte*>(prepared.copy.pointer()) + static_cast<std::size_t>(item * elements) * bytes,
        static_cast<const std::byte*>(matrix.data) +
            static_cast<std::size_t>(item * matrix.batch_stride) * bytes,
        static_cast<std::size_t>(elements) * bytes);
  }
  matrix.data = prepared.copy.pointer();
  matrix.batch_stride = elements;
}

// True if the operand can be split now, since its slices do not depend on the other operand.
bool can_split(const Plan& plan) {
  const Candidate& candidate = plan.prepared_candidate();
  return !candidate.scheme->fits_residuals() && candidate.program.recombination != Recombination::ozaki1;
}

// Allocates memory for ranges, norms, summaries and slices of all items. Each of the four is contiguous over
// all items. Returns the pointers for the first item.
DevicePrepared::Item lay_out_items(const Plan& plan, std::int64_t count, DevicePrepared& prepared) {
  const DeviceMatrix& matrix = prepared.matrix;
  const bool by_elements = plan.prepared_candidate().program.multiplies_elements();
  DevicePrepared::Item first;
  first.slices =
      make_slices(prepared.rule, SliceStorage::packed, by_elements ? matrix.rows : matrix.vectors(),
                  by_elements ? matrix.columns : matrix.length());
  if (!can_split(plan)) first.slices.count = 0;
  const bool by_norms = prepared.rule.scales == ScaleRule::norm;
  const auto lay_out = [&](Workspace& memory) {
    first.ranges = memory.take_array<VectorRange>(count, matrix.vectors());
    if (by_norms) first.norms = memory.take_array<VectorNorm>(count, matrix.vectors());
    first.summary = memory.take_array<MergedSummary>(count);
    if (can_split(plan))
      first.slices.place_items(memory.take(static_cast<std::size_t>(count) * first.slices.bytes()), count);
  };
  prepared.memory = allocate_on_device(plan, bytes_of_layout(lay_out), "slices of a prepared operand");
  Workspace memory(prepared.memory.pointer(), prepared.memory.bytes());
  lay_out(memory);
  return first;
}

// Finds ranges and norms of all items, and splits them if the slices do not depend on the other operand.
void split_items(const Plan& plan, std::int64_t count, const DevicePrepared::Item& first,
                 const DevicePrepared& prepared) {
  const DeviceSide operand{
      .matrix = prepared.matrix, .ranges = first.ranges, .items = count, .norms = first.norms};
  const bool by_norms = prepared.rule.scales == ScaleRule::norm;
  // For FP32 the ranges must contain mean depths. find_ranges() always finds them, split() does not.
  const bool finds_ranges_first = by_norms || prepared.matrix.type == ElementType::f32 || !can_split(plan);
  if (by_norms) {
    cuda::find_norms(plan.queue, operand, {}, {});
  } else if (finds_ranges_first) {
    cuda::find_ranges(plan.queue, operand, {}, {});
  }
  if (can_split(plan)) {
    const DeviceSplit split{
        .side = operand, .rule = &prepared.rule, .slices = first.slices, .ranges_known = finds_ranges_first};
    cuda::split(plan.queue, {&split, 1}, {});
  }
  cuda::summarize(plan.queue, operand, first.summary);
}

// Finds the ranges of every item, and makes slices for the plan's prepared candidate if all later calls can
// use them.
void split_batch(const Plan& plan, Side side, std::int64_t count, DevicePrepared& prepared) {
  const Program& program = plan.prepared_candidate().program;
  prepared.rule = side == Side::a ? program.split_a : program.split_b;
  if (count == 0) return;  // an empty batch
  const DevicePrepared::Item first = lay_out_items(plan, count, prepared);
  split_items(plan, count, first, prepared);
  const std::int64_t vectors = prepared.matrix.vectors();
  for (std::int64_t index = 0; index < count; ++index) {
    DevicePrepared::Item item = first;
    item.ranges += index * vectors;
    if (item.norms != nullptr) item.norms += index * vectors;
    item.summary += index;
    item.slices = first.slices.item(index);
    prepared.items.push_back(item);
  }
}

}  // namespace

DevicePrepared::~DevicePrepared() {
  const cuda::ContextScope scope(context);
  if (scope.entered()) cuda::synchronize_quietly();
}

Prepared prepare_on_device(const Plan& plan, Side side, const void* data, Original original) {
  const Problem& problem = plan.problem;
  const Op op = side == Side::a ? problem.op_a : problem.op_b;
  check_caller(plan, plan.queue);
  cuda::prepare_device();
  auto prepared = std::make_shared<DevicePrepared>(*plan.engine);
  prepared->matrix = device_operand(problem, side, data);
  prepared->storage = operand_storage(problem, side);
  const bool serves_all_items = !prepared->matrix.pointers && prepared->matrix.batch_stride == 0;
  const std::int64_t count =
      serves_all_items ? std::min<std::int64_t>(problem.batch_count, 1) : problem.batch_count;
  prepared->count = count;
  if (original == Original::copied) copy_original(plan, count, *prepared);
  if (count == 1) prepared->matrix.batch_stride = 0;  // a single item serves all items of later batches
  const Candidate& candidate = plan.prepared_candidate();
  const bool has_slices = candidate.scheme != nullptr && candidate.program.split_a.slices > 0;
  if (has_slices && problem.k > 0) split_batch(plan, side, count, *prepared);
  if (plan.queue.kind == QueueKind::host) cuda::synchronize(plan.queue);
  prepared->copy.forget_queue();
  prepared->memory.forget_queue();
  return {.side = side,
          .type = problem.type,
          .complex = problem.complex,
          .conjugated = op == Op::conjugate_transpose,
          .vectors = side == Side::a ? problem.m : problem.n,
          .k = problem.k,
          .items = {},
          .device = prepared};
}

}  // namespace kintsugi::core
