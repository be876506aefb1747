#include "plan/device_checked.hpp"

#include "engines/device_engine.hpp"
#include "plan/bound.hpp"
#include "plan/checked.hpp"
#include "plan/device_memory.hpp"

namespace kintsugi::core {

namespace {

// The contract leaves room: a lower bound of |A||B| can prove entries.
bool proves(const Plan& plan) { return plan.contract.checked_coefficient > 0; }

Slices magnitude_slices(const SplitRule& rule, std::int64_t vectors, std::int64_t length) {
  return make_slices(*rule.format, SliceStorage::packed, rule.slices, vectors, length);
}

}  // namespace

template <class Visit>
void DeviceChecked::for_each_piece(const Plan& plan, const Blocking& blocking, const DeviceTileSize& tile,
                                   Memory& memory, const Visit& visit) {
  const Problem& problem = plan.problem;
  visit(memory.margins_a, array_bytes(problem.m, 1, sizeof(RoundingMargin)));
  visit(memory.margins_b, array_bytes(problem.vectors_b(), 1, sizeof(RoundingMargin)));
  visit(memory.open_count, aligned_size(sizeof(std::uint32_t)));
  visit(memory.open_places, array_bytes(tile.rows, tile.columns / problem.parts(), sizeof(std::uint32_t)));
  if (!proves(plan)) return;
  visit(memory.ranges_a, array_bytes(problem.m, 1, sizeof(VectorRange)));
  visit(memory.ranges_b, array_bytes(problem.vectors_b(), 1, sizeof(VectorRange)));
  memory.slices_a = magnitude_slices(magnitude_program.split_a, blocking.m, problem.products());
  memory.slices_b =
      magnitude_slices(magnitude_program.split_b, problem.parts() * blocking.n, problem.products());
  memory.sums = make_accumulators(SumType::i64, tile.rows, tile.columns, 1);
  visit(memory.slices_a.data, memory.slices_a.bytes());
  visit(memory.slices_b.data, memory.slices_b.bytes());
  visit(memory.sums.data, memory.sums.bytes());
}

std::size_t DeviceChecked::bytes(const Plan& plan, const Blocking& blocking, const DeviceTileSize& tile) {
  std::size_t sum = 0;
  Memory memory;
  for_each_piece(plan, blocking, tile, memory, [&](auto*&, std::size_t bytes) { sum += bytes; });
  return sum;
}

std::size_t DeviceChecked::scratch_bytes(const Plan& plan, const DeviceTileSize& tile) {
  if (!proves(plan)) return 0;
  return plan.engine->device()->scratch_bytes(magnitude_program.schedule, magnitude_program.format().id,
                                              tile.rows, tile.columns);
}

DeviceChecked::DeviceChecked(const Plan& plan, const Blocking& blocking, const DeviceTileSize& tile,
                             const Queue& queue, const DeviceSide& a, const DeviceSide& b,
                             const DeviceCondition& condition, Workspace& workspace)
    : plan_(plan), engine_(*plan.engine->device()), queue_(queue), a_(a), b_(b), condition_(condition) {
  for_each_piece(plan, blocking, tile, memory_, [&](auto*& pointer, std::size_t bytes) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(workspace.take(bytes));
  });
}

void DeviceChecked::find_margins() const {
  const Program& program = plan_.checked_candidate()->program;
  engine_.find_margins(queue_, {a_, program.split_a.top_exponent, memory_.margins_a},
                       {b_, program.split_b.top_exponent, memory_.margins_b}, condition_);
}

void DeviceChecked::split_rows(std::int64_t first, std::int64_t vectors) const {
  if (proves(plan_)) split(a_, memory_.ranges_a, magnitude_program.split_a, memory_.slices_a, first, vectors);
}

void DeviceChecked::split_columns(std::int64_t first, std::int64_t vectors) const {
  if (proves(plan_)) split(b_, memory_.ranges_b, magnitude_program.split_b, memory_.slices_b, first, vectors);
}

void DeviceChecked::split(const DeviceSide& side, VectorRange* ranges, const SplitRule& rule, Slices slices,
                          std::int64_t first, std::int64_t vectors) const {
  slices.vectors = vectors;
  const DeviceSplit one{{side.matrix, side.entry, ranges}, first, &rule, slices, false};
  engine_.split(queue_, {&one, 1}, condition_);
}

void DeviceChecked::multiply_magnitudes(std::int64_t row, std::int64_t rows, std::int64_t column,
                                        std::int64_t columns, std::byte* scratch) {
  if (!proves(plan_)) return;
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
  return {.rows = memory_.margins_a,
          .columns = memory_.margins_b,
          .largest_a = power_of_two(program.split_a.top_exponent + 1),
          .largest_b = power_of_two(program.split_b.top_exponent + 1),
          .demand = {plan_.contract.checked_coefficient, unit_roundoff(plan_.problem.type)},
          .magnitudes = reinterpret_cast<const std::int64_t*>(memory_.sums.data),
          .magnitude_unit = power_of_two(top - top_of_magnitudes)};
}

void DeviceChecked::recombine(const Accumulators& sums, const DeviceTile& tile, DeviceReport* report) const {
  const Program& program = plan_.checked_candidate()->program;
  // As the native product, where that is accurate enough.
  const bool plainly = proves(plan_) && native_coefficient(plan_.problem.type, plan_.problem.products()) <=
                                            plan_.contract.coefficient;
  const DeviceOpenEntries open{memory_.open_count, memory_.open_places, plainly};
  engine_.clear(queue_, open.count, sizeof *open.count);
  engine_.recombine_checked(queue_, sums, program.residue_system(), check(), tile, open);
  engine_.multiply_exactly(queue_, tile, open, report);
}

}  // namespace kintsugi::core
