#include "engines/cuda/split/pack_tiles.hpp"

#include <algorithm>

#include "base/status.hpp"
#include "engines/cuda/common/launch.hpp"
#include "engines/cuda/device.hpp"
#include "engines/cuda/select/select.hpp"
#include "engines/cuda/steps.hpp"

namespace kintsugi::core::cuda {

namespace {

PackTask task_of(const DeviceSplit& split, const DeviceCondition& condition, std::int64_t served_items) {
  const Slices& slices = split.slices;
  const SplitRule& rule = *split.rule;
  return {.matrix = split.side.matrix,
          .item = split.side.item,
          .ranges = split.side.ranges + split.first,
          .item_ranges = split.side.matrix.vectors(),
          .first = split.first,
          .vectors = slices.vectors,
          .vector_groups = slices.padded_vectors() / pack_vectors,
          .parts = divide_up(slices.vector_stride(), pack_length),
          .length = slices.k,
          .vector_stride = slices.vector_stride(),
          .slice_stride = slices.slice_stride(),
          .slices = reinterpret_cast<std::int8_t*>(slices.data),
          .item_bytes = static_cast<std::int64_t>(slices.slice_bytes()),
          .weights = reinterpret_cast<std::int32_t*>(slices.tile_weights),
          .failures = slices.tile_failures,
          .panels = slices.tile_panels(),
          .tiles = slices.tiles_of_vector(),
          .segments = rule.slices,
          .tile_vectors = rule.tile_vectors,
          .tile_depth = rule.tile_depth,
          .mean_depth_limit = rule.mean_depth_limit,
          .ranges_known = split.ranges_known || split.finds_depth,
          .condition = condition,
          .served_items = served_items};
}

// Moves the task to the items that come `items` later.
void advance(PackTask& task, std::int64_t items) {
  task.item += items;
  task.ranges += items * task.item_ranges;
  task.slices += items * task.item_bytes;
  task.weights += items * task.panels * task.tiles;
  task.failures += items * task.panels;
  if (task.condition.selection != nullptr) task.condition.selection += items;
}

// Clears the ranges of all vectors that a split reads. If these are not all vectors of an item, there is one
// item only.
void clear_ranges(const Queue& queue, const PackTask& task, std::int64_t items) {
  const std::int64_t vectors = items == 1 ? task.vectors : items * task.item_ranges;
  clear(queue, task.ranges, static_cast<std::size_t>(vectors) * sizeof(VectorRange));
}

// Splits one operand. `served_items` is the number of batch items of the call.
void pack(const Queue& queue, const DeviceSplit& split, const DeviceCondition& condition,
          std::int64_t served_items) {
  static const KernelName kernel{"pack_tiles", "pack_tiles", waits_for_grid_dependency};
  if (split.side.matrix.type != ElementType::f32 || split.rule->slices > 4)
    fail(Status::internal, "engine cuda got elements of type {} to split into {} segments",
         static_cast<int>(split.side.matrix.type), split.rule->slices);
  const std::int64_t items = split.side.items;
  PackTask task = task_of(split, condition, items == 1 ? served_items : 1);
  clear(queue, task.failures, static_cast<std::size_t>(items * task.panels) * sizeof(std::int32_t));
  if (!task.ranges_known) clear_ranges(queue, task, items);
  const std::int64_t blocks = task.vector_groups * task.parts;
  for_each_launch(items, [&](std::int64_t, std::int64_t launched_items) {
    launch(kernel, {blocks, launched_items}, pack_threads, no_shared_bytes, queue, task);
    advance(task, launched_items);
  });
}

// Panels of one operand. `shared`: all items have the same slices.
CountedPanels counted_panels(const Slices& slices, bool shared) {
  if (slices.data == nullptr) return {};
  return {.failures = slices.tile_failures,
          .item_panels = shared ? 0 : slices.tile_panels(),
          .panels = divide_up(slices.vectors, slices.tile_vectors),
          .tiles = slices.tiles_of_vector()};
}

}  // namespace

void pack_tiles(const Queue& queue, std::span<const DeviceSplit> splits, const DeviceCondition& condition) {
  // The packer finds ranges without depths.
  for (const DeviceSplit& split : splits) {
    if (split.finds_depth && !split.ranges_known)
      find_ranges(queue, split.side, no_side(split.side.items), {});
  }
  std::int64_t items = 1;
  for (const DeviceSplit& split : splits) items = std::max(items, split.side.items);
  for (const DeviceSplit& split : splits) pack(queue, split, condition, items);
}

void count_tiles(const Queue& queue, const DeviceTileCount& count, DeviceReport* report) {
  static const KernelName kernel{"pack_tiles", "count_tiles", waits_for_grid_dependency};
  CountTask task{.a = counted_panels(count.a, count.shares_a),
                 .b = counted_panels(count.b, count.shares_b),
                 .condition = count.condition,
                 .report = report};
  for_each_launch(count.items, [&](std::int64_t, std::int64_t items) {
    launch(kernel, {1, items}, count_threads, no_shared_bytes, queue, task);
    task.a.failures += task.a.failures == nullptr ? 0 : items * task.a.item_panels;
    task.b.failures += task.b.failures == nullptr ? 0 : items * task.b.item_panels;
    if (task.condition.selection != nullptr) task.condition.selection += items;
  });
}

}  // namespace kintsugi::core::cuda
