#include "planner/workspace/device_checked.hpp"

#include "engines/device_engine.hpp"
#include "schemes/magnitudes.hpp"

namespace kintsugi::core {

namespace {

Slices take_magnitudes(const Plan& plan, const SplitRule& rule, std::int64_t vectors, Workspace& workspace) {
  Slices slices =
      make_slices(*rule.format, SliceStorage::packed, rule.slices, vectors, plan.problem.products());
  slices.data = workspace.take(slices.bytes());
  return slices;
}

DeviceOpenElements take_open_elements(const Blocking& blocking, Workspace& workspace) {
  DeviceOpenElements elements;
  elements.state = workspace.take_array<DeviceCheckState>(1);
  elements.masks_per_column = DeviceOpenElements::masks_for_rows(blocking.m);
  elements.masks = workspace.take_array<std::uint32_t>(elements.masks_per_column, blocking.n);
  elements.list = workspace.take_array<std::uint32_t>(elements.masks_per_column, blocking.n);
  return elements;
}

}  // namespace

bool allows_error(const Plan& plan) { return plan.contract.checked_coefficient > 0; }

DeviceCheckedMemory lay_out_device_checked(const Plan& plan, const Blocking& blocking,
                                           const DeviceTileSize& tile, Workspace& workspace) {
  const Problem& problem = plan.problem;
  DeviceCheckedMemory memory;
  memory.rounding_errors_a = workspace.take_array<RoundingErrors>(problem.m);
  memory.rounding_errors_b = workspace.take_array<RoundingErrors>(problem.vectors_b());
  memory.open_elements = take_open_elements(blocking, workspace);
  if (!allows_error(plan)) return memory;
  memory.ranges_a = workspace.take_array<VectorRange>(problem.m);
  memory.ranges_b = workspace.take_array<VectorRange>(problem.vectors_b());
  memory.slices_a = take_magnitudes(plan, magnitude_program.split_a, blocking.m, workspace);
  memory.slices_b = take_magnitudes(plan, magnitude_program.split_b, problem.parts() * blocking.n, workspace);
  memory.sums = make_accumulators(SumType::i64, tile.rows, tile.columns, 1);
  memory.sums.data = workspace.take(memory.sums.bytes());
  return memory;
}

std::size_t magnitude_scratch_bytes(const Plan& plan, const DeviceTileSize& tile) {
  if (!allows_error(plan)) return 0;
  return plan.engine->device()->scratch_bytes(magnitude_program.schedule, magnitude_program.format().id,
                                              tile.rows, tile.columns);
}

}  // namespace kintsugi::core
