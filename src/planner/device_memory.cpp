// Memory of an execution on a device.
#include <algorithm>

#include "engines/cuda/steps.hpp"
#include "planner/device_call.hpp"
#include "planner/memory.hpp"
#include "planner/steps.hpp"
#include "schemes/bound.hpp"
#include "schemes/magnitudes.hpp"

namespace kintsugi::core {

namespace {

// Rows and columns of sums.
struct SumsSize {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

// Returns the size of the sums of one tile. A column of C has `sums_per_column` columns of sums.
SumsSize sums_size(const Blocking& tiles, const Blocking& blocking, std::int64_t sums_per_column) {
  const std::int64_t rows = std::min(blocking.m, tiles.m);
  const std::int64_t columns = sums_per_column * std::min(blocking.n, tiles.n);
  return {round_up(rows, sums_multiple), round_up(columns, sums_multiple)};
}

// Returns the size of the sums of a tile of the real product of magnitudes, by which elements are checked.
SumsSize magnitudes_size(const Plan& plan, const Blocking& blocking) {
  const Candidate& candidate = *plan.checked_candidate();
  return sums_size(tiles_of(plan, candidate, blocking), blocking, plan.problem.parts());
}

std::size_t scratch_bytes(const Program& program, const SumsSize& sums) {
  return cuda::product_scratch_bytes(program.schedule, program.format().id, sums.rows, sums.columns);
}

}  // namespace

bool covers_all(const Plan& plan, const Blocking& blocking) {
  return blocking.m >= plan.problem.m && blocking.n >= plan.problem.n;
}

std::int64_t items_at_once(const Plan& plan, const Blocking& blocking) {
  // A launch with slices of so many bytes fills the device, so more batch items would bring nothing.
  constexpr std::int64_t enough_bytes = std::int64_t{256} << 20;
  if (plan.problem.batch_count == 1 || !covers_all(plan, blocking)) return 1;
  if (converts_inside(plan)) return plan.problem.batch_count;  // there are no slices
  std::size_t bytes_of_item = 1;
  for (const Candidate& candidate : emulations(plan)) {
    const DeviceBlockMemory memory = block_slices(plan, candidate, blocking);
    bytes_of_item = std::max(bytes_of_item, memory.a.bytes() + memory.b.bytes());
  }
  return std::clamp<std::int64_t>(enough_bytes / static_cast<std::int64_t>(bytes_of_item), 1,
                                  plan.problem.batch_count);
}

// Checked candidates also multiply magnitudes, with two real columns for each complex column.
Blocking tiles_of(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  constexpr std::int64_t tile = cuda::product_tile;
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

DeviceBlockMemory block_slices(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Program& program = candidate.program;
  const std::int64_t k = program.multiplies_elements() ? plan.problem.k : plan.problem.products();
  const auto slices_of = [&](const SplitRule& rule, std::int64_t vectors) {
    return make_slices(rule, SliceStorage::packed, vectors, k);
  };
  return {.a = slices_of(program.split_a, blocking.m),
          .b = slices_of(program.split_b, vectors_per_column(plan, candidate) * blocking.n),
          .sums = {}};
}

namespace {

// Takes the memory of a block. `tiles`: nullptr if a fused kernel multiplies, which has no sums in memory.
DeviceBlockMemory take_block(const Plan& plan, const Candidate& candidate, const Blocking& blocking,
                             const Blocking* tiles, const SliceItems& items, Workspace& workspace) {
  DeviceBlockMemory memory = block_slices(plan, candidate, blocking);
  memory.a.place_items(workspace.take(static_cast<std::size_t>(items.a) * memory.a.bytes()), items.a);
  memory.b.place_items(workspace.take(static_cast<std::size_t>(items.b) * memory.b.bytes()), items.b);
  if (tiles == nullptr) return memory;
  const Program& program = candidate.program;
  const SumsSize size = sums_size(*tiles, blocking, vectors_per_column(plan, candidate));
  std::size_t scratch = scratch_bytes(program, size);
  if (candidate.checked && allows_error(plan))  // products of magnitudes run earlier and use the same scratch
    scratch = std::max(scratch, scratch_bytes(magnitude_program, magnitudes_size(plan, blocking)));
  constexpr bool reduces_sums_modulo = true;  // devices store sums of residues modulo the moduli
  memory.sums = make_accumulators(program.sum_type(reduces_sums_modulo), size.rows, size.columns,
                                  program.schedule.sums());
  memory.sums.data = workspace.take(memory.sums.bytes());
  memory.scratch = workspace.take(scratch);
  return memory;
}

std::size_t block_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Blocking tiles = tiles_of(plan, candidate, blocking);
  return bytes_of_layout(
      [&](Workspace& counter) { take_block(plan, candidate, blocking, &tiles, {}, counter); });
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

DeviceBlockMemory lay_out_block(const Plan& plan, const Step& loop, std::span<const Step> body,
                                const SliceItems& items, Workspace& workspace) {
  const auto tiles = std::ranges::find(body, StepKind::for_tiles, &Step::kind);
  return take_block(plan, plan.candidates[static_cast<std::size_t>(loop.candidate)], loop.size,
                    tiles == body.end() ? nullptr : &tiles->size, items, workspace);
}

Blocking candidate_blocking(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Candidate& first = plan.candidates.front();
  const bool needs_norms = first.acceptance.by_norms() || first.program.split_a.scales == ScaleRule::norm;
  if (!candidate.checked && (!needs_norms || covers_all(plan, blocking))) return blocking;
  const std::size_t max_bytes = candidate.checked
                                    ? block_bytes(plan, *plan.checked_candidate(), blocking) / 2 * 3
                                    : block_bytes(plan, first, blocking);
  Blocking divided = blocking;
  if (!candidate.checked) divided.m = rows_within(plan, candidate, blocking, max_bytes);
  while (block_bytes(plan, candidate, divided) > max_bytes) {
    const Blocking smaller = smaller_blocking(divided, block_multiple(plan));
    if (smaller == divided) break;
    divided = smaller;
  }
  return divided;
}

// ---------------------------------------------------------------- checked candidates

namespace {

DeviceCheckedMemory lay_out_checked(const Plan& plan, const Blocking& blocking, Workspace& workspace) {
  const Problem& problem = plan.problem;
  const auto take_magnitudes = [&](const SplitRule& rule, std::int64_t vectors) {
    Slices slices = make_slices(*rule.format, SliceStorage::packed, rule.slices, vectors, problem.products());
    slices.data = workspace.take(slices.bytes());
    return slices;
  };
  DeviceCheckedMemory memory;
  memory.rounding_errors_a = workspace.take_array<RoundingErrors>(problem.m);
  memory.rounding_errors_b = workspace.take_array<RoundingErrors>(problem.vectors_b());
  DeviceOpenElements& open = memory.open_elements;
  open.state = workspace.take_array<DeviceCheckState>(1);
  open.masks_per_column = DeviceOpenElements::masks_for_rows(blocking.m);
  open.masks = workspace.take_array<std::uint32_t>(open.masks_per_column, blocking.n);
  open.list = workspace.take_array<std::uint32_t>(open.masks_per_column, blocking.n);
  // Open elements are recomputed in the arithmetic of the native product, if native meets the contract.
  open.in_own_arithmetic = allows_error(plan) && native_meets(plan.contract, problem);
  if (!allows_error(plan)) return memory;
  memory.ranges_a = workspace.take_array<VectorRange>(problem.m);
  memory.ranges_b = workspace.take_array<VectorRange>(problem.vectors_b());
  memory.slices_a = take_magnitudes(magnitude_program.split_a, blocking.m);
  memory.slices_b = take_magnitudes(magnitude_program.split_b, problem.parts() * blocking.n);
  const SumsSize size = magnitudes_size(plan, blocking);
  memory.sums = make_accumulators(SumType::i64, size.rows, size.columns, 1);
  memory.sums.data = workspace.take(memory.sums.bytes());
  return memory;
}

}  // namespace

// ---------------------------------------------------------------- Ozaki scheme I

namespace {

using Mode = Ozaki1Parameters::Mode;

// Slices keep every bit of rows and columns up to this dynamic range (mode=cr).
constexpr int range_of_exact_slices = 40;
// Largest number of binades between the largest magnitude of a row and its weighted sum (mode=dp, sp).
constexpr int range_of_weights = 16;

const Program& program_of(const Plan& plan) { return plan.candidates.front().program; }

}  // namespace

bool is_exact_ozaki1(const Plan& plan) { return program_of(plan).ozaki1.mode == Mode::cr; }

std::int64_t ozaki1_k_block(const Plan& plan) {
  const std::int64_t k = plan.problem.products();
  const std::int64_t k_block = program_of(plan).schedule.block_length(k);
  return k_block < k ? k_block : round_up(k, Slices::k_multiple);
}

bool adds_ozaki1_products(const Plan& plan) {
  const Program& program = program_of(plan);
  return !is_exact_ozaki1(plan) &&
         cuda::adds_slice_products(program.format().id, plan.problem.products(), ozaki1_k_block(plan),
                                   program.split_a.residual_exponent);
}

std::int64_t ozaki1_edge(const Plan& plan) {
  return adds_ozaki1_products(plan) ? ozaki1_added_edge : ozaki1_tile_edge;
}

int ozaki1_device_slices(const Plan& plan) {
  const Program& program = program_of(plan);
  if (program.ozaki1.slices != 0) return program.ozaki1.slices;
  const int bits_per_slice = program.split_a.successive_gain();
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

Accumulators ozaki1_products(const Plan& plan, std::int64_t rows, std::int64_t columns) {
  return make_accumulators(SumType::i64, round_up(rows, sums_multiple),
                           round_up(plan.problem.parts() * columns, sums_multiple), ozaki1_products_at_once);
}

namespace {

DeviceOzaki1Memory lay_out_ozaki1(const Plan& plan, const Blocking& blocking, Workspace& workspace) {
  const Program& program = program_of(plan);
  const Problem& problem = plan.problem;
  const auto take_slices = [&](std::int64_t vectors) {
    Slices slices = make_slices(program.format(), SliceStorage::packed, ozaki1_device_slices(plan), vectors,
                                problem.products());
    slices.data = workspace.take(slices.bytes());
    return slices;
  };
  const auto take_exponents = [&](const Slices& slices) {
    DeviceSliceExponents taken;
    taken.values = workspace.take_array<std::int32_t>(slices.count, slices.allocated_vectors);
    taken.stride = slices.allocated_vectors;
    taken.lengths = workspace.take_array<std::int32_t>(slices.allocated_vectors);
    return taken;
  };
  const std::int64_t rows = block_edge(problem.m, program.ozaki1.block);
  const std::int64_t columns = block_edge(problem.n, program.ozaki1.block);
  const std::int64_t edge = ozaki1_edge(plan);
  const Accumulators products = ozaki1_products(plan, std::min(blocking.m, edge), std::min(blocking.n, edge));
  DeviceOzaki1Memory memory;
  memory.a = take_slices(blocking.m);
  memory.b = take_slices(problem.parts() * blocking.n);
  memory.exponents_a = take_exponents(memory.a);
  memory.exponents_b = take_exponents(memory.b);
  memory.unreachable = workspace.take_array<std::int32_t>(1);
  memory.slice_counts = {.counts = nullptr,
                         .rows = rows,
                         .vectors = problem.parts() * columns,
                         .blocks_m = divide_up(problem.m, rows),
                         .blocks_n = divide_up(problem.n, columns),
                         .lengths = nullptr};
  if (!is_exact_ozaki1(plan) && program.ozaki1.slices == 0) {  // the device counts the slices
    memory.weights = workspace.take_array<double>(memory.slice_counts.blocks_n, problem.products());
    memory.slice_counts.counts =
        workspace.take_array<SliceCounts>(memory.slice_counts.blocks_m, memory.slice_counts.blocks_n);
  } else {
    memory.slice_counts.lengths =
        workspace.take_array<std::int32_t>(memory.slice_counts.blocks_m + memory.slice_counts.blocks_n);
  }
  memory.sums = workspace.take(
      array_bytes(products.rows, products.columns, DeviceProductSums::bytes_of_sum(is_exact_ozaki1(plan))));
  if (adds_ozaki1_products(plan)) return memory;
  memory.products = workspace.take(products.bytes());
  if (cuda::has_slice_products(program.format().id, ozaki1_k_block(plan))) return memory;
  memory.scratch = workspace.take(scratch_bytes(program, {products.rows, products.columns}));
  return memory;
}

// Takes the scratch memory of fused kernels, in which one step clears the counters before the selection.
void take_fused_scratch(const Plan& plan, std::span<const Step> steps, const Blocking& blocking,
                        Workspace& workspace, DeviceMemory& memory) {
  const auto for_each_kernel = [&](const auto& visit) {
    for (const Step& step : steps) {
      if (step.kind != StepKind::fused) continue;
      const Candidate& candidate = plan.candidates[static_cast<std::size_t>(step.candidate)];
      visit(*step.kernel, fused_shape(plan, candidate, blocking));
    }
  };
  std::size_t bytes = 0;
  for_each_kernel([&](const FusedKernel& kernel, const DeviceShape& shape) {
    bytes = std::max(bytes, kernel.device_scratch_bytes(shape));
  });
  memory.scratch = workspace.take(bytes);
  if (memory.scratch == nullptr) return;
  for_each_kernel([&](const FusedKernel& kernel, const DeviceShape& shape) {
    if (kernel.counters == nullptr) return;
    const DeviceCounters counters = kernel.counters(shape, memory.scratch);
    if (counters.count > memory.counters.count) memory.counters = counters;
  });
}

}  // namespace

DeviceMemory lay_out_device(const Plan& plan, std::span<const Step> steps, const Blocking& blocking,
                            Workspace& workspace) {
  DeviceMemory memory;
  if (converts_inside(plan)) {
    take_fused_scratch(plan, steps, blocking, workspace, memory);
    return memory;
  }
  const std::int64_t items = steps.front().size.m;
  bool has_norms = false;
  bool has_magnitudes = false;
  bool has_fused = false;
  bool has_ozaki1 = false;
  std::size_t block_bytes = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const StepKind kind = step.kind;
    has_magnitudes =
        has_magnitudes || (kind == StepKind::find_scaling_norms && plan.candidates.front().checked);
    has_norms = has_norms || kind == StepKind::find_norms || kind == StepKind::find_scaling_norms ||
                kind == StepKind::split_by_norms;
    has_fused = has_fused || kind == StepKind::fused;
    has_ozaki1 = has_ozaki1 || kind == StepKind::split_successively;
    if (kind != StepKind::for_blocks || step.candidate == Step::no_candidate || has_ozaki1) continue;
    const auto body = steps.subspan(i + 1, static_cast<std::size_t>(step.length));
    if (body.front().kind == StepKind::split_successively) continue;
    block_bytes = std::max(block_bytes, bytes_of_layout([&](Workspace& counter) {
                             lay_out_block(plan, step, body, {items, items}, counter);
                           }));
  }
  const auto take_side = [&](std::int64_t vectors) {
    DeviceMemory::Side side;
    side.ranges = workspace.take_array<VectorRange>(items * vectors);
    if (has_norms) side.norms = workspace.take_array<VectorNorm>(items * vectors);
    if (has_magnitudes) side.magnitudes = workspace.take_array<VectorMagnitudes>(items * vectors);
    return side;
  };
  const Problem& problem = plan.problem;
  memory.a = take_side(problem.m);
  memory.b = take_side(problem.vectors_b());
  if (has_fused && problem.m > most_ranges_selected)
    memory.a.summaries = workspace.take_array<MergedSummary>(items);
  if (has_fused && problem.n > most_ranges_selected)
    memory.b.summaries = workspace.take_array<MergedSummary>(items);
  memory.selections = workspace.take_array<DeviceSelection>(items);
  if (has_fused) take_fused_scratch(plan, steps, blocking, workspace, memory);
  if (has_ozaki1) memory.ozaki1 = lay_out_ozaki1(plan, blocking, workspace);
  memory.block_bytes = block_bytes;
  memory.blocks = workspace.take(block_bytes);
  if (plan.is_checked()) memory.checked = lay_out_checked(plan, blocking, workspace);
  return memory;
}

}  // namespace kintsugi::core
