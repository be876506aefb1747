#include "plan/device_pieces.hpp"

#include <algorithm>

#include "plan/device_error_free.hpp"
#include "plan/device_fused.hpp"
#include "plan/device_memory.hpp"

namespace kintsugi::core {

namespace {

// Rows and columns of a tile's sums, `each` for a column of C.
DeviceTileSize tile_size(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                         std::int64_t each) {
  return {round_up(std::min(blocking.m, plan.engine->device()->tile()), sums_multiple),
          round_up(each * std::min(blocking.n, tile_columns(plan, candidate)), sums_multiple)};
}

}  // namespace

bool sums_exactly(const Plan& plan) {
  return plan.candidates.front().program.recombination == Recombination::exact_sums;
}

std::span<const Candidate> product_candidates(const Plan& plan) {
  const auto multiplies = [](const Candidate& candidate) {
    return candidate.scheme != nullptr && candidate.program.recombination != Recombination::exact_sums;
  };
  const auto end = std::find_if_not(plan.candidates.begin(), plan.candidates.end(), multiplies);
  return {plan.candidates.begin(), end};
}

bool asks_for_norms(const Plan& plan) { return plan.candidates.front().proved_by_norms; }

std::int64_t columns_each(const Plan& plan, const Candidate& candidate) {
  return candidate.program.multiplies_entries() ? 1 : plan.problem.parts();
}

std::int64_t tile_columns(const Plan& plan, const Candidate& candidate) {
  return plan.engine->device()->tile() /
         (candidate.checked ? plan.problem.parts() : columns_each(plan, candidate));
}

bool begins_with_choice(const Plan& plan) {
  return plan.problem.batch_count == 1 && !plan.is_native() && !is_error_free(plan);
}

bool is_error_free(const Plan& plan) {
  return plan.candidates.front().program.recombination == Recombination::error_free;
}

DeviceTileSize checked_tile_size(const Plan& plan, const Blocking& blocking) {
  return tile_size(plan, *plan.checked_candidate(), blocking, plan.problem.parts());
}

BlockPieces block_pieces(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  const Program& program = candidate.program;
  const auto slices_of = [&](const SplitRule& rule, std::int64_t vectors) {
    return make_slices(*rule.format, SliceStorage::packed, rule.slices, vectors,
                       program.multiplies_entries() ? problem.k : problem.products());
  };
  const DeviceTileSize tile = tile_size(plan, candidate, blocking, columns_each(plan, candidate));
  const std::size_t scratch =
      plan.engine->device()->scratch_bytes(program.schedule, program.format().id, tile.rows, tile.columns);
  return {slices_of(program.split_a, blocking.m),
          slices_of(program.split_b, columns_each(plan, candidate) * blocking.n),
          make_accumulators(program.sum_type(true), tile.rows, tile.columns, program.schedule.sums()),
          candidate.checked
              ? std::max(scratch, DeviceChecked::scratch_bytes(plan, checked_tile_size(plan, blocking)))
              : scratch};
}

std::size_t most_piece_bytes(const Plan& plan, const Blocking& blocking) {
  std::size_t most = 0;
  for (const Candidate& candidate : product_candidates(plan))
    most = std::max(most, block_pieces(plan, candidate, blocking).bytes());
  return most;
}

std::size_t norm_bytes(const Plan& plan, std::int64_t vectors) {
  return asks_for_norms(plan) ? array_bytes(vectors, 1, sizeof(VectorNorm)) : 0;
}

std::size_t device_workspace_bytes(const Plan& plan, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  if (plan.is_native()) return blocking.native_scratch_bytes + blocking.native_sum_bytes;
  if (is_fused(plan)) return fused_workspace_bytes(plan, blocking);
  const std::size_t ranges = array_bytes(problem.m, 1, sizeof(VectorRange)) +
                             array_bytes(problem.vectors_b(), 1, sizeof(VectorRange)) +
                             norm_bytes(plan, problem.m) + norm_bytes(plan, problem.vectors_b()) +
                             aligned_size(sizeof(DeviceChoice));
  if (sums_exactly(plan)) return ranges;
  if (is_error_free(plan)) return ranges + device_error_free_bytes(plan, blocking);
  return ranges + most_piece_bytes(plan, blocking) +
         (plan.is_checked() ? DeviceChecked::bytes(plan, blocking, checked_tile_size(plan, blocking))
                            : std::size_t{0});
}

}  // namespace kintsugi::core
