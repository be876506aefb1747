#include "execute/device/device.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "arith/complex.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/steps.hpp"
#include "execute/device/memory.hpp"
#include "execute/host/operand.hpp"
#include "planner/candidates.hpp"
#include "planner/memory.hpp"

namespace kintsugi::core {

namespace {

// Returns the plan of one batch item in device memory. There op(A) has contiguous rows, op(B) has contiguous
// columns, and C is column-major.
Plan plan_of_item(const Plan& plan) {
  Plan item_plan = plan;
  Problem& problem = item_plan.problem;
  problem.memory = MemorySpace::device;
  problem.layout = Layout::column_major;
  problem.op_a = Op::transpose;
  problem.op_b = Op::none;
  problem.lda = problem.ldb = std::max<std::int64_t>(problem.k, 1);
  problem.ldc = std::max<std::int64_t>(problem.m, 1);
  problem.batch_kind = BatchKind::strided;
  problem.batch_count = 1;
  item_plan.allocator = {};  // the caller's allocator cannot be used: it returns host memory
  item_plan.queue = {};
  set_steps(item_plan);
  return item_plan;
}

template <class T>
T conjugated_if(bool conjugate, T x) {
  if constexpr (is_complex<T>) {
    return conjugate ? std::conj(x) : x;
  } else {
    return x;
  }
}

// Returns the elements of an operand, vector after vector. Each vector is contiguous.
template <class View>
auto packed(const View& view) {
  const auto& matrix = elements_of(view);
  using T = std::remove_cvref_t<decltype(matrix(0, 0))>;
  std::vector<T> values;
  values.reserve(static_cast<std::size_t>(matrix.rows * matrix.columns));
  for (std::int64_t v = 0; v < matrix.rows; ++v) {
    for (std::int64_t p = 0; p < matrix.columns; ++p)
      values.push_back(conjugated_if(is_conjugated(view), matrix(v, p)));
  }
  return values;
}

template <class T>
DeviceBuffer copy_to_device(const Plan& plan, const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  DeviceBuffer buffer(plan, plan.queue, bytes);
  if (buffer.pointer() == nullptr && bytes > 0)
    fail(Status::out_of_memory, "the device has no {} bytes for a matrix", bytes);
  if (bytes > 0) cuda::copy_to_device(plan.queue, buffer.pointer(), values.data(), bytes);
  return buffer;
}

// Adapts the scheme's program to the operands' ranges. The host finds these ranges.
template <class T>
void adapt_to_ranges(Plan& item_plan, const OperandView<T>& a, const OperandView<T>& b) {
  Candidate& candidate = item_plan.candidates.front();
  if (candidate.scheme == nullptr || candidate.scheme->adapt == nullptr) return;
  const auto summary_of = [&](const auto& view, const SplitRule& rule) {
    std::vector<VectorRange> ranges(static_cast<std::size_t>(view.rows));
    find_ranges(view, rule, ranges, item_plan.threads);
    return summarize(ranges);
  };
  const RangeSummary summary_a = summary_of(a, candidate.program.split_a);
  const RangeSummary summary_b = summary_of(b, candidate.program.split_b);
  candidate.scheme->adapt(candidate.program, summary_a, summary_b, item_plan.problem.products());
  candidate.acceptance.exponent = largest_exponent(candidate, item_plan.problem.products());
  set_steps(item_plan);
}

// Adds the report of one item's execution to the report of the call.
void add_to_report(const Plan& plan, const Plan& item_plan, const Report& item_report, Report& report) {
  for (std::size_t c = 0; c < report.items.size(); ++c) report.items[c] += item_report.items[c];
  report.items_with_special_values += item_report.items_with_special_values;
  report.items_unreachable += item_report.items_unreachable;
  report.recomputed_elements += item_report.recomputed_elements;
  report.ranges_known = item_report.ranges_known;
  report.dynamic_range_a = std::max(report.dynamic_range_a, item_report.dynamic_range_a);
  report.dynamic_range_b = std::max(report.dynamic_range_b, item_report.dynamic_range_b);
  report.tiles_a += item_report.tiles_a;
  report.tiles_b += item_report.tiles_b;
  report.workspace_bytes = std::max(report.workspace_bytes, item_report.workspace_bytes);
  report.blocking = item_report.blocking;
  const Candidate& candidate = item_plan.candidates.front();
  const Program& planned = plan.candidates.front().program;
  if (candidate.scheme != nullptr &&
      !(candidate.program.split_a == planned.split_a && candidate.program.split_b == planned.split_b))
    report.set_adapted(candidate, candidate.program, plan.problem.products());
}

// Fails if the scheme cannot be adapted to one of the batch items. Called before C of any item is written.
template <class T>
void check_adapts(const Plan& plan, const Operands& operands) {
  const Scheme* scheme = plan.candidates.front().scheme;
  if (scheme == nullptr || scheme->adapt == nullptr) return;
  for (std::int64_t index = 0; index < plan.problem.batch_count; ++index) {
    Plan item_plan = plan_of_item(plan);
    adapt_to_ranges<T>(item_plan, view_of_a<T>(plan.problem, operands.a, operands.prepared_a, index),
                       view_of_b<T>(plan.problem, operands.b, operands.prepared_b, index));
  }
}

template <class T>
void copy_elements(const MatrixView<T>& source, const MatrixView<T>& target) {
  for (std::int64_t j = 0; j < source.columns; ++j) {
    for (std::int64_t i = 0; i < source.rows; ++i) target(i, j) = source(i, j);
  }
}

// Multiplies one batch item. The device counts in `device_report`, and the counts are added to `report`.
template <class T>
void stage_item(const Plan& plan, const Operands& operands, std::int64_t index, DeviceReport* device_report,
                Report& report) {
  const auto a = view_of_a<T>(plan.problem, operands.a, operands.prepared_a, index);
  const auto b = view_of_b<T>(plan.problem, operands.b, operands.prepared_b, index);
  const MatrixView<T> c = view_of_c<T>(plan.problem, operands.c, index);
  Plan item_plan = plan_of_item(plan);
  adapt_to_ranges<T>(item_plan, a, b);
  std::vector<T> result(static_cast<std::size_t>(c.rows * c.columns));
  const MatrixView<T> dense{result.data(), c.rows, c.columns, 1, c.rows};
  if (!operands.beta.is_zero()) copy_elements(c, dense);
  const DeviceBuffer device_a = copy_to_device(item_plan, packed(a));
  const DeviceBuffer device_b = copy_to_device(item_plan, packed(b));
  const DeviceBuffer device_c = copy_to_device(item_plan, result);
  Operands on_device = operands;
  on_device.a = device_a.pointer();
  on_device.b = device_b.pointer();
  on_device.c = device_c.pointer();
  on_device.prepared_a = on_device.prepared_b = nullptr;
  on_device.workspace = nullptr;
  on_device.device_report = device_report;
  Report item_report;
  execute(item_plan, on_device, item_report);
  cuda::copy_to_host(item_plan.queue, result.data(), device_c.pointer(), result.size() * sizeof(T));
  read_device_report(item_plan, device_report, item_report);
  add_to_report(plan, item_plan, item_report, report);
  copy_elements(dense, c);
}

}  // namespace

void stage(const Plan& plan, const Operands& operands, Report& report) {
  check_caller(plan, plan.queue);
  cuda::prepare_device();
  const Plan on_device = plan_of_item(plan);
  DeviceBuffer device_report(on_device, {}, aligned_size(sizeof(LongDeviceReport)));
  if (device_report.pointer() == nullptr)
    fail(Status::out_of_memory, "the device has no {} bytes for a report", device_report.bytes());
  with_element_type(plan.problem, [&]<class T>() {
    check_adapts<T>(plan, operands);
    for (std::int64_t index = 0; index < plan.problem.batch_count; ++index)
      stage_item<T>(plan, operands, index, static_cast<DeviceReport*>(device_report.pointer()), report);
  });
}

}  // namespace kintsugi::core
