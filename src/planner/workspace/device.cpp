#include "planner/workspace/device.hpp"

#include <algorithm>

#include "engines/device_engine.hpp"
#include "planner/workspace/fused.hpp"
#include "planner/workspace/ozaki1_device.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

// Rows and columns of C in a tile. Checked candidates also multiply magnitudes, with two real columns for
// each complex column.
Blocking tiles_of(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const std::int64_t tile = plan.engine->device()->tile();
  const std::int64_t per_column =
      candidate.checked ? plan.problem.parts() : vectors_per_column(plan, candidate);
  Blocking tiles{tile, tile / per_column};
  if (candidate.checked || candidate.program.recombination != Recombination::residues) return tiles;
  // Integer sums are the same in tiles of any shape. Each tile costs launches, and early exits of candidates
  // that are not selected; their share is larger for short sums. So tiles have 2 or 4 tile^2 sums, and narrow
  // ones are longer.
  constexpr std::int64_t short_sum = 1024;
  const std::int64_t sums = tile * tile * (plan.problem.k <= short_sum ? 4 : 2);
  const std::int64_t rows = round_up(blocking.m, sums_multiple);
  if (rows < tile) {
    tiles.n = std::max(tiles.n, sums / rows / tile * tile / per_column);
  } else {
    const std::int64_t columns = round_up(per_column * std::min(blocking.n, tiles.n), sums_multiple);
    tiles.m = std::max(tiles.m, sums / columns / tile * tile);
  }
  return tiles;
}

// Size of the sums of one tile. A column of C has `sums_per_column` columns of sums.
DeviceTileSize tile_size(const Candidate& candidate, const Blocking& tiles, const Blocking& blocking,
                         std::int64_t sums_per_column) {
  const Program& program = candidate.program;
  const std::int64_t rows = std::min(blocking.m, tiles.m);
  const std::int64_t columns = sums_per_column * std::min(blocking.n, tiles.n);
  return {round_up(program.extent_of_slices(rows), sums_multiple),
          round_up(program.extent_of_slices(columns), sums_multiple)};
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

bool needs_norms(const Plan& plan) {
  const Candidate& first = plan.candidates.front();
  return first.acceptance.by_norms() || first.program.split_a.scales == ScaleRule::norm;
}

std::int64_t vectors_per_column(const Plan& plan, const Candidate& candidate) {
  return candidate.program.multiplies_elements() ? 1 : plan.problem.parts();
}

bool begins_with_selection(const Plan& plan) {
  return plan.problem.batch_count == 1 && !plan.is_native() && !is_ozaki1(plan) &&
         !has_tiles(plan.candidates.front().program);  // tiles are counted in the report before the selection
}

bool is_ozaki1(const Plan& plan) {
  return plan.candidates.front().program.recombination == Recombination::ozaki1;
}

DeviceTileSize checked_tile_size(const Plan& plan, const Blocking& blocking) {
  const Candidate& candidate = *plan.checked_candidate();
  return tile_size(candidate, tiles_of(plan, candidate, blocking), blocking, plan.problem.parts());
}

DeviceItemMemory lay_out_item(const Plan& plan, Workspace& workspace) {
  const auto take_norms = [&](std::int64_t vectors) {
    return needs_norms(plan) ? workspace.take_array<VectorNorm>(vectors) : nullptr;
  };
  const bool needs_magnitudes = plan.candidates.front().checked && needs_norms(plan);
  const auto take_magnitudes = [&](std::int64_t vectors) {
    return needs_magnitudes ? workspace.take_array<VectorMagnitudes>(vectors) : nullptr;
  };
  const Problem& problem = plan.problem;
  DeviceItemMemory memory;
  memory.ranges_a = workspace.take_array<VectorRange>(problem.m);
  memory.norms_a = take_norms(problem.m);
  memory.magnitudes_a = take_magnitudes(problem.m);
  memory.ranges_b = workspace.take_array<VectorRange>(problem.vectors_b());
  memory.norms_b = take_norms(problem.vectors_b());
  memory.magnitudes_b = take_magnitudes(problem.vectors_b());
  memory.selection = workspace.take_array<DeviceSelection>(1);
  return memory;
}

DeviceBlockMemory lay_out_block(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                                Workspace& workspace) {
  const Program& program = candidate.program;
  const std::int64_t k = program.multiplies_elements() ? plan.problem.k : plan.problem.products();
  const auto take_slices = [&](const SplitRule& rule, std::int64_t vectors) {
    Slices slices = make_slices(*rule.format, SliceStorage::packed, rule.slices,
                                program.extent_of_slices(vectors), program.extent_of_slices(k));
    slices.data = workspace.take(slices.bytes());
    return slices;
  };
  DeviceBlockMemory memory;
  memory.tiles = tiles_of(plan, candidate, blocking);
  const DeviceTileSize tile =
      tile_size(candidate, memory.tiles, blocking, vectors_per_column(plan, candidate));
  std::size_t scratch =
      plan.engine->device()->scratch_bytes(program.schedule, program.format().id, tile.rows, tile.columns);
  if (candidate.checked)
    scratch = std::max(scratch, magnitude_scratch_bytes(plan, checked_tile_size(plan, blocking)));
  memory.a = take_slices(program.split_a, blocking.m);
  memory.b = take_slices(program.split_b, vectors_per_column(plan, candidate) * blocking.n);
  constexpr bool reduces_sums_modulo = true;  // devices store sums of residues modulo the moduli
  memory.sums = make_accumulators(program.sum_type(reduces_sums_modulo), tile.rows, tile.columns,
                                  program.schedule.sums());
  memory.sums.data = workspace.take(memory.sums.bytes());
  memory.scratch = workspace.take(scratch);
  return memory;
}

namespace {

std::size_t block_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  return bytes_of_layout([&](Workspace& workspace) { lay_out_block(plan, candidate, blocking, workspace); });
}

// Returns the rows of equal blocks that have as many columns as `blocking` and need at most `max_bytes`;
// blocking.m if there are none.
std::int64_t rows_within(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                         std::size_t max_bytes) {
  const std::int64_t multiple = block_multiple(plan);
  for (std::int64_t blocks = divide_up(plan.problem.m, blocking.m);; ++blocks) {
    const std::int64_t rows = round_up(divide_up(plan.problem.m, blocks), multiple);
    if (block_bytes(plan, candidate, {rows, blocking.n}) <= max_bytes) return rows;
    if (rows == multiple) return blocking.m;
  }
}

}  // namespace

Blocking candidate_blocking(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const bool is_cut = blocking.m < plan.problem.m || blocking.n < plan.problem.n;
  if (!candidate.checked && !(needs_norms(plan) && is_cut)) return blocking;
  const std::size_t max_bytes = candidate.checked
                                    ? block_bytes(plan, *plan.checked_candidate(), blocking) / 2 * 3
                                    : block_bytes(plan, plan.candidates.front(), blocking);
  Blocking divided = blocking;
  if (!candidate.checked) divided.m = rows_within(plan, candidate, blocking, max_bytes);
  while (block_bytes(plan, candidate, divided) > max_bytes) {
    const Blocking smaller = smaller_blocking(divided, block_multiple(plan));
    if (smaller == divided) break;
    divided = smaller;
  }
  return divided;
}

std::size_t max_block_bytes(const Plan& plan, const Blocking& blocking) {
  std::size_t max_bytes = 0;
  for (const Candidate& candidate : product_candidates(plan))
    max_bytes =
        std::max(max_bytes, block_bytes(plan, candidate, candidate_blocking(plan, candidate, blocking)));
  return max_bytes;
}

std::size_t device_workspace_bytes(const Plan& plan, const Blocking& blocking) {
  if (plan.is_native()) return blocking.native_scratch_bytes;
  return bytes_of_layout([&](Workspace& workspace) {
    if (is_fused(plan)) {
      lay_out_fused(plan, blocking, workspace);
      return;
    }
    lay_out_item(plan, workspace);
    if (sums_exactly(plan)) return;
    if (is_ozaki1(plan)) {
      lay_out_device_ozaki1(plan, blocking, workspace);
      return;
    }
    workspace.take(max_block_bytes(plan, blocking));
    if (plan.is_checked())
      lay_out_device_checked(plan, blocking, checked_tile_size(plan, blocking), workspace);
  });
}

}  // namespace kintsugi::core
