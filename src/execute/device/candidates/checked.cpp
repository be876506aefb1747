#include "execute/device/candidates/checked.hpp"

#include "engines/device_engine.hpp"
#include "planner/workspace/device.hpp"
#include "schemes/bound.hpp"
#include "schemes/magnitudes.hpp"

namespace kintsugi::core {

DeviceChecked::DeviceChecked(const Plan& plan, const Blocking& blocking, const DeviceTileSize& tile,
                             const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                             const DeviceCondition& condition, Workspace& workspace)
    : plan_(plan), engine_(*plan.engine->device()), queue_(queue), a_(a), b_(b), condition_(condition),
      memory_(lay_out_device_checked(plan, blocking, tile, workspace)) {}

void DeviceChecked::find_rounding_bounds() const {
  const Program& program = plan_.checked_candidate()->program;
  engine_.find_rounding_bounds(queue_, {a_, program.split_a.top_exponent, memory_.rounding_bounds_a},
                               {b_, program.split_b.top_exponent, memory_.rounding_bounds_b}, condition_);
}

void DeviceChecked::split_rows(std::int64_t first, std::int64_t vectors) const {
  if (proves_elements(plan_))
    split(a_, memory_.ranges_a, magnitude_program.split_a, memory_.slices_a, first, vectors);
}

void DeviceChecked::split_columns(std::int64_t first, std::int64_t vectors) const {
  if (proves_elements(plan_))
    split(b_, memory_.ranges_b, magnitude_program.split_b, memory_.slices_b, first, vectors);
}

void DeviceChecked::split(const DeviceSide& side, VectorRange* ranges, const SplitRule& rule, Slices slices,
                          std::int64_t first, std::int64_t vectors) const {
  slices.vectors = vectors;
  const DeviceSplit one{{side.matrix, side.item, ranges}, first, &rule, slices, false};
  engine_.split(queue_, {&one, 1}, condition_);
}

void DeviceChecked::multiply_magnitudes(std::int64_t row, std::int64_t rows, std::int64_t column,
                                        std::int64_t columns, std::byte* scratch) {
  if (!proves_elements(plan_)) return;
  memory_.sums.rows = round_up(rows, sums_multiple);
  memory_.sums.columns = round_up(columns, sums_multiple);
  engine_.multiply(queue_, magnitude_program.schedule, memory_.slices_a.block(row, rows),
                   memory_.slices_b.block(column, columns), memory_.sums, scratch, nullptr, condition_);
}

DeviceCheck DeviceChecked::check() const {
  const Program& program = plan_.checked_candidate()->program;
  const int top = program.split_a.top_exponent + program.split_b.top_exponent;
  const int top_of_magnitudes =
      magnitude_program.split_a.top_exponent + magnitude_program.split_b.top_exponent;
  return {.rows = memory_.rounding_bounds_a,
          .columns = memory_.rounding_bounds_b,
          .largest_a = power_of_two(program.split_a.top_exponent + 1),
          .largest_b = power_of_two(program.split_b.top_exponent + 1),
          .demand = {plan_.contract.checked_coefficient, unit_roundoff(plan_.problem.type)},
          .magnitudes = reinterpret_cast<const std::int64_t*>(memory_.sums.data),
          .magnitude_unit = power_of_two(top - top_of_magnitudes)};
}

void DeviceChecked::recombine(const Accumulators& sums, const DeviceTile& tile, DeviceReport* report) const {
  const Program& program = plan_.checked_candidate()->program;
  // Computes open elements as the native product does, if that is accurate enough.
  const bool plainly =
      proves_elements(plan_) &&
      native_coefficient(plan_.problem.type, plan_.problem.products()) <= plan_.contract.coefficient;
  const DeviceOpenElements open{memory_.open_count, memory_.open_indices, plainly};
  engine_.clear(queue_, open.count, sizeof *open.count);
  engine_.recombine_checked(queue_, sums, program.residue_system(), check(), tile, open);
  engine_.multiply_exactly(queue_, tile, open, report);
}

}  // namespace kintsugi::core
