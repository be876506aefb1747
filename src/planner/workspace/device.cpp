#include "planner/workspace/device.hpp"

#include <algorithm>

#include "engines/cuda/steps.hpp"
#include "planner/candidates/candidates.hpp"
#include "planner/plan.hpp"
#include "planner/problem.hpp"
#include "schemes/bound.hpp"
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
  return cuda::product_scratch_bytes(magnitude_program.schedule, magnitude_program.format().id, tile.rows,
                                     tile.columns);
}

namespace {

using Mode = Ozaki1Parameters::Mode;

// Slices keep every bit of rows and columns up to this dynamic range (mode=cr).
constexpr int range_of_exact_slices = 40;
// Largest number of binades between the largest magnitude of a row and its weighted sum (mode=dp, sp).
constexpr int range_of_weights = 16;

const Program& program_of(const Plan& plan) { return plan.candidates.front().program; }
// True if the device counts the slices that the data need.
bool counts_slices(const Plan& plan) { return !is_exact_ozaki1(plan) && program_of(plan).ozaki1.slices == 0; }

Slices take_slices(const Plan& plan, std::int64_t vectors, Workspace& workspace) {
  Slices slices = make_slices(program_of(plan).format(), SliceStorage::packed, ozaki1_device_slices(plan),
                              vectors, plan.problem.products());
  slices.data = workspace.take(slices.bytes());
  return slices;
}

DeviceSliceExponents take_exponents(const Slices& slices, Workspace& workspace) {
  DeviceSliceExponents taken;
  taken.values = workspace.take_array<std::int32_t>(slices.count, slices.allocated_vectors);
  taken.stride = slices.allocated_vectors;
  taken.lengths = workspace.take_array<std::int32_t>(slices.allocated_vectors);
  return taken;
}

}  // namespace

bool is_exact_ozaki1(const Plan& plan) { return program_of(plan).ozaki1.mode == Mode::cr; }

int ozaki1_device_slices(const Plan& plan) {
  const Program& program = program_of(plan);
  if (program.ozaki1.slices != 0) return program.ozaki1.slices;
  // A slice has residual_exponent bits. It is rounded to nearest, so that the residual loses one more bit.
  const int bits_per_slice = program.split_a.residual_exponent + 1;
  const auto slices_for = [&](int bits) { return static_cast<int>(divide_up(bits, bits_per_slice)); };
  int slices = 0;
  if (is_exact_ozaki1(plan)) {
    // The slices reach from the first bit of the largest element to the last bit of the smallest one. These
    // bits are the dynamic range, the significand and two more.
    const int element_bits = plan.problem.type == OperandType::f32 ? 26 : 55;
    slices = slices_for(range_of_exact_slices + element_bits);
  } else {
    const int result_bits = program.ozaki1.mode == Mode::sp ? 24 : 53;
    slices = slices_for(range_of_weights + result_bits) + 1;
  }
  return std::clamp(slices, 2, Ozaki1Parameters::max_slices);
}

DeviceBlockSliceCounts ozaki1_slice_counts(const Plan& plan) {
  const Problem& problem = plan.problem;
  const Ozaki1Parameters& parameters = program_of(plan).ozaki1;
  const std::int64_t rows = block_edge(problem.m, parameters.block);
  const std::int64_t columns = block_edge(problem.n, parameters.block);
  return {.counts = nullptr,
          .rows = rows,
          .vectors = problem.parts() * columns,
          .blocks_m = divide_up(problem.m, rows),
          .blocks_n = divide_up(problem.n, columns)};
}

Accumulators ozaki1_products(const Plan& plan, std::int64_t rows, std::int64_t columns) {
  return make_accumulators(SumType::i64, round_up(rows, sums_multiple),
                           round_up(plan.problem.parts() * columns, sums_multiple), ozaki1_products_at_once);
}

DeviceOzaki1Memory lay_out_device_ozaki1(const Plan& plan, const Blocking& blocking, Workspace& workspace) {
  const Program& program = program_of(plan);
  const DeviceBlockSliceCounts counts = ozaki1_slice_counts(plan);
  const Accumulators products =
      ozaki1_products(plan, std::min(blocking.m, ozaki1_tile_edge), std::min(blocking.n, ozaki1_tile_edge));
  DeviceOzaki1Memory memory;
  memory.a = take_slices(plan, blocking.m, workspace);
  memory.b = take_slices(plan, plan.problem.parts() * blocking.n, workspace);
  memory.exponents_a = take_exponents(memory.a, workspace);
  memory.exponents_b = take_exponents(memory.b, workspace);
  memory.unreachable = workspace.take_array<std::int32_t>(1);
  if (counts_slices(plan)) {
    memory.weights = workspace.take_array<double>(counts.blocks_n, plan.problem.products());
    memory.slice_counts = workspace.take_array<SliceCounts>(counts.blocks_m, counts.blocks_n);
  }
  memory.products = workspace.take(products.bytes());
  memory.sums = workspace.take(
      array_bytes(products.rows, products.columns, DeviceProductSums::bytes_of_sum(is_exact_ozaki1(plan))));
  memory.scratch = workspace.take(
      cuda::product_scratch_bytes(program.schedule, program.format().id, products.rows, products.columns));
  return memory;
}

namespace {

std::size_t max_slice_bytes(const Plan& plan, const Blocking& blocking) {
  std::size_t max_bytes = 0;
  for (const Candidate& candidate : emulations(plan))
    max_bytes = std::max(max_bytes, fused_slices(plan, candidate, blocking).bytes());
  return max_bytes;
}

// Returns the shape of a candidate's products in one launch.
DeviceShape shape_of(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Program& program = candidate.program;
  return {.schedule = program.schedule,
          .format = program.format().id,
          .type = element_type(plan.problem),
          .m = std::min(blocking.m, plan.problem.m),
          .n = std::min(blocking.n, plan.problem.n),
          .k = plan.problem.k,
          .items = items_at_once(plan, blocking),
          .prepared_a = false,
          .prepared_b = false};
}

std::size_t max_scratch_bytes(const Plan& plan, const Blocking& blocking) {
  std::size_t bytes = 0;
  for (const Candidate& candidate : emulations(plan))
    bytes = std::max(bytes, cuda::fused_scratch_bytes(shape_of(plan, candidate, blocking)));
  return bytes;
}

// Returns the counters of the candidate with the most counters. One step clears them before the selection.
DeviceCounters most_counters(const Plan& plan, const Blocking& blocking, std::byte* scratch) {
  DeviceCounters counters;
  for (const Candidate& candidate : emulations(plan)) {
    const DeviceCounters candidate_counters =
        cuda::fused_counters(shape_of(plan, candidate, blocking), scratch);
    if (candidate_counters.count > counters.count) counters = candidate_counters;
  }
  return counters;
}

}  // namespace

bool is_fused(const Plan& plan) {
  const auto candidates = emulations(plan);
  return !candidates.empty() &&
         std::all_of(candidates.begin(), candidates.end(),
                     [&](const Candidate& candidate) { return is_fused(plan, candidate); });
}

std::span<const Candidate> emulations(const Plan& plan) {
  const bool native_follows = plan.candidates.back().scheme == nullptr;
  return {plan.candidates.data(), plan.candidates.size() - (native_follows ? 1 : 0)};
}

bool covers_all(const Plan& plan, const Blocking& blocking) {
  return blocking.m >= plan.problem.m && blocking.n >= plan.problem.n;
}

std::int64_t items_at_once(const Plan& plan, const Blocking& blocking) {
  // A launch with slices of so many bytes fills the device, so more batch items would bring nothing.
  constexpr std::int64_t enough_bytes = std::int64_t{256} << 20;
  if (!covers_all(plan, blocking)) return 1;
  const auto bytes_of_item = static_cast<std::int64_t>(max_slice_bytes(plan, blocking));
  return std::clamp<std::int64_t>(enough_bytes / std::max<std::int64_t>(bytes_of_item, 1), 1,
                                  plan.problem.batch_count);
}

FusedSlices fused_slices(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const auto slices_of = [&](const SplitRule& rule, std::int64_t vectors) {
    return make_slices(rule, SliceStorage::packed, vectors, plan.problem.k);
  };
  return {slices_of(candidate.program.split_a, blocking.m), slices_of(candidate.program.split_b, blocking.n)};
}

FusedMemory lay_out_fused(const Plan& plan, const Blocking& blocking, Workspace& workspace) {
  const std::int64_t items = items_at_once(plan, blocking);
  // The selection runs on one thread block, which takes about 16 us to read the ranges of 16384 vectors. The
  // ranges of more vectors are summarized before the selection by several thread blocks.
  constexpr std::int64_t many_vectors = 16384;
  FusedMemory memory{};
  memory.rows = workspace.take_array<VectorRange>(items * plan.problem.m);
  memory.columns = workspace.take_array<VectorRange>(items * plan.problem.n);
  if (plan.problem.m > many_vectors) memory.row_summaries = workspace.take_array<MergedSummary>(items);
  if (plan.problem.n > many_vectors) memory.column_summaries = workspace.take_array<MergedSummary>(items);
  memory.selections = workspace.take_array<DeviceSelection>(items);
  memory.scratch = workspace.take(max_scratch_bytes(plan, blocking));
  if (memory.scratch != nullptr) memory.counters = most_counters(plan, blocking, memory.scratch);
  memory.slices = workspace.take(static_cast<std::size_t>(items) * max_slice_bytes(plan, blocking));
  return memory;
}

namespace {

// Rows and columns of C in a tile. Checked candidates also multiply magnitudes, with two real columns for
// each complex column.
Blocking tiles_of(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const std::int64_t tile = cuda::product_tile;
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
      cuda::product_scratch_bytes(program.schedule, program.format().id, tile.rows, tile.columns);
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
