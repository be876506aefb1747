// Prepared operands.
#include <algorithm>

#include "execute/device/prepare.hpp"
#include "execute/execute.hpp"
#include "execute/host/operand.hpp"
#include "split/norms.hpp"
#include "split/split.hpp"

namespace kintsugi::core {

namespace {

HostBuffer allocate(const Plan& plan, std::size_t bytes) {
  HostBuffer buffer(plan.allocator, bytes);
  if (buffer.pointer() == nullptr && bytes > 0) {
    fail(Status::out_of_memory, "the allocator has no {} bytes for a prepared operand", bytes);
  }
  return buffer;
}

// Returns the view of a dense copy, without memory. A stride of the copy is 1 if and only if it is 1 in the
// original. An engine that selects a kernel by strides then selects the same kernel for copy and original.
template <class T>
MatrixView<T> with_similar_strides(const MatrixView<const T>& source) {
  const auto dense_stride = [](std::int64_t stride, std::int64_t length) {
    return stride == 1 ? 1 : std::max<std::int64_t>(length, 2);
  };
  const bool unit_along_vectors = source.row_stride == 1;
  return {nullptr, source.rows, source.columns,
          unit_along_vectors ? 1 : dense_stride(source.row_stride, source.columns),
          unit_along_vectors ? dense_stride(source.column_stride, source.rows) : 1};
}

template <class T>
std::size_t bytes_of(const MatrixView<T>& view) {
  if (view.rows == 0 || view.columns == 0) return 0;
  const std::int64_t last = (view.rows - 1) * view.row_stride + (view.columns - 1) * view.column_stride;
  return array_bytes(last + 1, 1, sizeof(T));
}

template <class T>
MatrixView<const T> copy_operand(const MatrixView<const T>& source, MatrixView<T> copy) {
  for (std::int64_t v = 0; v < source.rows; ++v) {
    for (std::int64_t p = 0; p < source.columns; ++p) copy(v, p) = source(v, p);
  }
  return {copy.data, copy.rows, copy.columns, copy.row_stride, copy.column_stride};
}

// Finds the ranges of a batch item and splits it, unless its slices depend on the other operand.
template <class View>
void split_item(const Plan& plan, Side side, const View& copy, Prepared::Item& item) {
  if (plan.widest_emulation() == nullptr) return;
  const auto rule_of = [&](const Candidate& candidate) {
    return side == Side::a ? candidate.program.split_a : candidate.program.split_b;
  };
  item.ranges.resize(static_cast<std::size_t>(copy.rows));
  find_ranges(copy, rule_of(*plan.widest_emulation()), item.ranges, plan.threads);
  const RangeSummary summary =
      summarize(item.ranges);  // the other operand is assumed to have the same ranges
  const auto candidate = std::ranges::find_if(plan.candidates, [&](const Candidate& each) {
    return accepts(each.acceptance, summary, summary, plan.problem.products());
  });
  if (candidate == plan.candidates.end() || candidate->scheme == nullptr) return;
  item.rule = rule_of(*candidate);
  const SplitRule& rule = item.rule;
  if (rule.kind == SplitKind::successive) return;  // the slice count depends on both operands and the block
  if (rule.kind == SplitKind::direct_residuals) return;  // products split while they multiply
  if (rule.scales == ScaleRule::product) return;         // the scales depend on both operands
  set_scales(item.ranges, rule);
  if (rule.scales == ScaleRule::norm) scale_by_norms(copy, rule, item.ranges, plan.threads);
  item.slices =
      make_slices(rule, plan.engine->slice_storage(rule.format->id),
                  slice_vectors_each(copy, rule) * elements_of(copy).rows, slice_length(copy, rule));
  item.slice_memory = allocate(plan, item.slices.bytes());
  item.slices.place(static_cast<std::byte*>(item.slice_memory.pointer()));
  split_operand(copy, rule, item.ranges, item.slices, plan.threads);
}

template <class T>
Prepared::Item prepare_item(const Plan& plan, Side side, const void* data, std::int64_t index) {
  const Problem& problem = plan.problem;
  constexpr const Prepared* not_prepared = nullptr;
  const OperandView<T> source = side == Side::a ? view_of_a<T>(problem, data, not_prepared, index)
                                                : view_of_b<T>(problem, data, not_prepared, index);
  const MatrixView<const T>& matrix = elements_of(source);
  Prepared::Item item;
  MatrixView<T> target = with_similar_strides(matrix);
  item.copy = allocate(plan, bytes_of(target));
  target.data = static_cast<T*>(item.copy.pointer());
  const MatrixView<const T> copy = copy_operand(matrix, target);
  item.vector_stride = copy.row_stride;
  item.element_stride = copy.column_stride;
  split_item(plan, side, operand_view<T>(copy, side, is_conjugated(source)), item);
  return item;
}

}  // namespace

Prepared prepare(const Plan& plan, Side side, const void* data, Original original) {
  if (plan.is_offloaded()) return prepare(*plan.host_plan, side, data, original);
  const Problem& problem = plan.problem;
  if (problem.memory == MemorySpace::device) return prepare_on_device(plan, side, data, original);
  const Op op = side == Side::a ? problem.op_a : problem.op_b;
  Prepared prepared{.side = side,
                    .type = problem.type,
                    .complex = problem.complex,
                    .conjugated = op == Op::conjugate_transpose,
                    .vectors = side == Side::a ? problem.m : problem.n,
                    .k = problem.k,
                    .items = {}};
  const std::int64_t stride = side == Side::a ? problem.stride_a : problem.stride_b;
  const bool serves_all_items = problem.batch_kind == BatchKind::strided && stride == 0;
  const std::int64_t count =
      serves_all_items ? std::min<std::int64_t>(problem.batch_count, 1) : problem.batch_count;
  for (std::int64_t index = 0; index < count; ++index) {
    prepared.items.push_back(
        with_element_type(problem, [&]<class T>() { return prepare_item<T>(plan, side, data, index); }));
  }
  return prepared;
}

bool has_slices_of(const Plan& plan, const Prepared& prepared) {
  if (plan.is_offloaded()) return has_slices_of(*plan.host_plan, prepared);
  const auto splits_by = [&](const SplitRule& rule, const Candidate& candidate) {
    return candidate.scheme != nullptr &&
           rule == (prepared.side == Side::a ? candidate.program.split_a : candidate.program.split_b);
  };
  if (const DevicePrepared* on_device = prepared.device.get()) {
    return !on_device->items.empty() && on_device->items.front().slices.data != nullptr &&
           splits_by(on_device->rule, plan.prepared_candidate());
  }
  return std::ranges::all_of(prepared.items, [&](const Prepared::Item& item) {
    return item.slices.data != nullptr &&
           std::ranges::any_of(plan.candidates,
                               [&](const Candidate& candidate) { return splits_by(item.rule, candidate); });
  });
}

}  // namespace kintsugi::core
