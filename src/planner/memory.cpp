// Counts the workspace of a plan, and finds the blocking with which the workspace fits a limit.
#include <algorithm>
#include <array>

#include "engines/cuda/steps.hpp"
#include "planner/device_call.hpp"
#include "planner/memory.hpp"
#include "planner/plan.hpp"
#include "planner/steps.hpp"
#include "schemes/magnitudes.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

namespace {

std::int64_t half_rounded_up(std::int64_t length, std::int64_t multiple) {
  return std::max(multiple, round_up(divide_up(length, 2), multiple));
}

}  // namespace

namespace {

// Returns the bytes that the steps of one candidate's block, or of a whole product, take on the host.
std::size_t host_step_bytes(const Plan& plan, const Step& step, const Blocking& blocking) {
  const auto bytes = [](const auto& lay_out) { return bytes_of_layout(lay_out); };
  const auto block_bytes = [&](const Program& program) {
    return bytes([&](Workspace& counter) { lay_out_block(plan, program, blocking, counter); });
  };
  if (step.candidate < 0) return 0;
  const Candidate& candidate = plan.candidates[static_cast<std::size_t>(step.candidate)];
  const Program& program = candidate.program;
  switch (step.kind) {
    case StepKind::multiply_natively: return native_scratch_bytes(plan, candidate, blocking);
    case StepKind::multiply_exactly:
      return bytes([&](Workspace& counter) {
        lay_out_exact_sums(plan, counter);
        if (begins_with_grid(plan)) lay_out_element_states(plan, counter);
      });
    case StepKind::multiply_by_ozaki1:
      return bytes([&](Workspace& counter) { lay_out_ozaki1(plan, program, blocking, counter); });
    case StepKind::multiply_checked: {
      std::size_t most = block_bytes(magnitude_program);
      for (const Candidate& checked : plan.candidates) {
        if (!checked.checked) continue;
        most = std::max(most, block_bytes(checked.program));
        const FusedKernel* kernel = fused_checked_kernel(plan, checked);
        if (kernel == nullptr) continue;
        for (const Blocking& size : {blocking, Blocking{first_tile, first_tile}}) {
          const FusedProblem problem = fused_problem(plan, checked, checked.program, size);
          most = std::max(most, kernel->scratch_bytes(problem, plan.threads));
        }
      }
      return most + bytes([&](Workspace& counter) { lay_out_check(plan, blocking, counter); });
    }
    case StepKind::fused:
    case StepKind::split: {
      const std::size_t own =
          step.kind == StepKind::fused
              ? step.kernel->scratch_bytes(fused_problem(plan, candidate, program, blocking), plan.threads)
              : block_bytes(program);
      if (program.split_a.scales == ScaleRule::product)
        return std::max(own, block_bytes(magnitude_above_program) +
                                 bytes([&](Workspace& counter) { lay_out_product_bits(plan, counter); }));
      if (!begins_with_grid(plan)) return own;
      return own + bytes([&](Workspace& counter) { lay_out_refused_elements(plan, blocking, counter); });
    }
    default: return 0;
  }
}

}  // namespace

// On the host candidates use the same memory, after that of the ranges.
std::size_t workspace_bytes(const Plan& plan, std::span<const Step> steps, const Blocking& blocking) {
  if (steps.empty()) return 0;
  if (plan.engine->is_device()) {
    if (plan.is_native()) return blocking.native_scratch_bytes;
    return bytes_of_layout([&](Workspace& counter) { lay_out_device(plan, steps, blocking, counter); });
  }
  std::size_t most = 0;
  for (const Step& step : steps) most = std::max(most, host_step_bytes(plan, step, blocking));
  return most + bytes_of_layout([&](Workspace& counter) {
           if (!plan.is_native()) lay_out_ranges(plan, counter);
           lay_out_norms(plan, counter);
           if (begins_with_grid(plan)) lay_out_ranges(plan, counter);
         });
}

std::size_t workspace_bytes(const Plan& plan, const Blocking& blocking) {
  return workspace_bytes(plan, make_steps(plan, blocking), blocking);
}

namespace {

// Prepares the kernels that multiply the candidate's tiles. Blocks of C are whole tiles, but for the last.
void prepare_product(const Plan& plan, const Candidate& candidate) {
  const Blocking tiles = tiles_of(plan, candidate, plan.blocking);
  const std::int64_t per_column = vectors_per_column(plan, candidate);
  const std::array rows{std::min(plan.problem.m, tiles.m), plan.problem.m % tiles.m};
  const std::array columns{per_column * std::min(plan.problem.n, tiles.n),
                           per_column * (plan.problem.n % tiles.n)};
  cuda::prepare_multiply(candidate.program.schedule, candidate.program.format().id, candidate.accumulator,
                         rows, columns);
}

}  // namespace

void set_steps(Plan& plan) {
  plan.steps = make_steps(plan, plan.blocking);
  plan.workspace_bytes = workspace_bytes(plan, plan.steps, plan.blocking);
  plan.variants.clear();
  for (Step& step : plan.steps) {
    if (step.kind == StepKind::multiply && plan.engine->is_device())
      prepare_product(plan, plan.candidates[static_cast<std::size_t>(step.candidate)]);
    if (step.kind != StepKind::fused || step.kernel->choose == nullptr) continue;
    const Candidate& candidate = plan.candidates[static_cast<std::size_t>(step.candidate)];
    step.variant = static_cast<std::int16_t>(plan.variants.size());
    plan.variants.push_back(step.kernel->choose(fused_shape(plan, candidate, plan.blocking)));
  }
}

std::int64_t block_multiple(const Plan& plan) {
  const auto has_same_bits_on_any_tiles = [](const Candidate& candidate) {
    return candidate.scheme == nullptr || candidate.program.recombination == Recombination::exact_sums ||
           !candidate.program.format().floating;
  };
  const bool may_move_tiles = !plan.engine->is_device() || is_fused(plan) ||
                              std::ranges::all_of(plan.candidates, has_same_bits_on_any_tiles);
  return may_move_tiles ? Slices::vector_multiple : cuda::product_tile;
}

// For a native product on a device, halves the vendor library's scratch. For other products, halves the
// longer side of the blocks.
Blocking smaller_blocking(const Blocking& blocking, std::int64_t multiple) {
  if (blocking.native_scratch_bytes > 0) {
    Blocking smaller = blocking;
    smaller.native_scratch_bytes =
        blocking.native_scratch_bytes / 2 / workspace_alignment * workspace_alignment;
    return smaller;
  }
  if (blocking.m >= blocking.n && blocking.m > multiple)
    return {half_rounded_up(blocking.m, multiple), blocking.n};
  if (blocking.n > multiple) return {blocking.m, half_rounded_up(blocking.n, multiple)};
  return blocking;
}

namespace {

// Returns the edge of a block if `length` is cut into `count` equal blocks, rounded up to a multiple of
// `multiple`.
std::int64_t edge_for(std::int64_t length, std::int64_t count, std::int64_t multiple) {
  return round_up(divide_up(length, count), multiple);
}

// Returns the cost of splits if C has `blocks_m` x `blocks_n` blocks (execute/blocks.hpp), as a number of
// vectors. Columns of B are split once. Rows of A are split once for every column of blocks, except those of
// the blocks at which the direction changes. The launches of each block cost as much as launch_cost vectors.
std::int64_t split_cost(const Plan& plan, std::int64_t blocks_m, std::int64_t blocks_n) {
  constexpr std::int64_t launch_cost = 128;
  const std::int64_t rows_of_a = blocks_n * plan.problem.m - (blocks_n - 1) * (plan.problem.m / blocks_m);
  return rows_of_a + plan.problem.n + blocks_m * blocks_n * launch_cost;
}

// Returns the blocking within the limit that has the lowest split_cost(). `halved`: a blocking within the
// limit that was found by halving. With `halved`, FP64 products of n = 8192 within 1 GiB spent 3.3
// of 15.3 ms on splitting A again for each of four columns of blocks. Fewer columns of blocks may need more
// rows of blocks than halving made, so that twice as many rows of blocks are tried.
Blocking least_splitting(const Plan& plan, const Blocking& halved, std::size_t limit) {
  const std::int64_t multiple = block_multiple(plan);
  constexpr std::int64_t max_blocks = 16;  // bounds the time of planning
  const std::int64_t halved_m = divide_up(plan.problem.m, halved.m);
  const std::int64_t halved_n = divide_up(plan.problem.n, halved.n);
  Blocking best = halved;
  std::int64_t min_cost = split_cost(plan, halved_m, halved_n);
  for (std::int64_t blocks_n = 1; blocks_n <= std::min(halved_n, max_blocks); ++blocks_n) {
    for (std::int64_t blocks_m = 1; blocks_m <= 2 * std::min(halved_m, max_blocks); ++blocks_m) {
      const Blocking blocking{edge_for(plan.problem.m, blocks_m, multiple),
                              edge_for(plan.problem.n, blocks_n, multiple)};
      const std::int64_t cost = split_cost(plan, blocks_m, blocks_n);
      if (cost >= min_cost || workspace_bytes(plan, blocking) > limit) continue;
      min_cost = cost;
      best = blocking;
    }
  }
  return best;
}

// Columns of C that a reproducible product computes at once. The sums take 16 bytes an element. For all
// columns, sums and slices of B would take so much memory that the operating system clears it for every call,
// an eighth of the time at n = 2048.
constexpr std::int64_t columns_on_grid = 512;

}  // namespace

std::optional<Blocking> blocking_within(const Plan& plan, std::size_t limit) {
  Blocking blocking{plan.problem.m, plan.problem.n};
  if (begins_with_grid(plan)) blocking.n = std::min(blocking.n, columns_on_grid);
  if (plan.engine->is_device() && plan.is_native())
    blocking.native_scratch_bytes = cuda::vendor_workspace_bytes;
  while (limit != 0 && workspace_bytes(plan, blocking) > limit) {
    const Blocking smaller = smaller_blocking(blocking, block_multiple(plan));
    if (smaller == blocking) return std::nullopt;
    blocking = smaller;
  }
  const bool is_cut = blocking.m < plan.problem.m || blocking.n < plan.problem.n;
  return is_cut && plan.engine->is_device() && !plan.is_native() ? least_splitting(plan, blocking, limit)
                                                                 : blocking;
}

Blocking fit_blocking(const Plan& plan, std::size_t limit) {
  if (const auto blocking = blocking_within(plan, limit)) return *blocking;
  const std::int64_t multiple = block_multiple(plan);
  Blocking smallest{plan.problem.m, plan.problem.n};
  while (smaller_blocking(smallest, multiple) != smallest) smallest = smaller_blocking(smallest, multiple);
  fail(Status::workspace_too_small,
       "a workspace limit of {} bytes is too small for m = {}, n = {}, k = {}: the smallest block needs {}",
       limit, plan.problem.m, plan.problem.n, plan.problem.k, workspace_bytes(plan, smallest));
}

}  // namespace kintsugi::core
