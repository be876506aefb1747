// Workspace of a plan and the blocking that makes it fit a limit.
#include <algorithm>

#include "engines/device_engine.hpp"
#include "planner/plan.hpp"
#include "planner/workspace/device.hpp"
#include "planner/workspace/fused.hpp"
#include "planner/workspace/host.hpp"
#include "planner/workspace/native_sums.hpp"
#include "split/slices.hpp"

namespace kintsugi::core {

namespace {

std::int64_t half_rounded_up(std::int64_t length, std::int64_t multiple) {
  return std::max(multiple, round_up(divide_up(length, 2), multiple));
}

}  // namespace

std::size_t native_scratch_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  if (!candidate.fixed_order || problem.type == OperandType::dd) return 0;
  const std::size_t real_bytes = problem.type == OperandType::f32 ? sizeof(float) : sizeof(double);
  return plan.engine->fixed_order_bytes(real_bytes, blocking.m, problem.parts() * blocking.n,
                                        problem.products(), plan.threads);
}

std::size_t workspace_bytes(const Plan& plan, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  if (problem.m == 0 || problem.n == 0 || problem.k == 0 || problem.batch_count == 0) return 0;
  if (plan.engine->device() != nullptr) return device_workspace_bytes(plan, blocking);
  return host_workspace_bytes(plan, blocking);
}

std::int64_t block_multiple(const Plan& plan) {
  const DeviceEngine* device = plan.engine->device();
  const auto fits_any = [](const Candidate& candidate) {
    return candidate.scheme == nullptr || candidate.program.recombination == Recombination::exact_sums ||
           !candidate.program.format().floating;
  };
  const bool any = device == nullptr || is_fused(plan) || std::ranges::all_of(plan.candidates, fits_any);
  return any ? Slices::vector_multiple : device->tile();
}

Blocking smaller_blocking(const Blocking& blocking, std::int64_t multiple) {
  const auto halved = [](std::size_t bytes) { return bytes / 2 / workspace_alignment * workspace_alignment; };
  if (blocking.native_scratch_bytes + blocking.native_sum_bytes > 0) {
    Blocking smaller = blocking;
    auto& larger = blocking.native_sum_bytes > blocking.native_scratch_bytes ? smaller.native_sum_bytes
                                                                             : smaller.native_scratch_bytes;
    larger = halved(larger);
    return smaller;
  }
  if (blocking.m >= blocking.n && blocking.m > multiple)
    return {half_rounded_up(blocking.m, multiple), blocking.n};
  if (blocking.n > multiple) return {blocking.m, half_rounded_up(blocking.n, multiple)};
  return blocking;
}

namespace {

// Equal parts of a length, rounded up to the multiple.
std::int64_t part_of(std::int64_t length, std::int64_t count, std::int64_t multiple) {
  return round_up(divide_up(length, count), multiple);
}

// Rows and columns that are split in all: columns of B once, rows of A for every panel of columns unless one
// block has them all (execute/blocks.hpp). A block more costs its launches.
std::int64_t split_cost(const Plan& plan, std::int64_t row_parts, std::int64_t column_parts) {
  constexpr std::int64_t vectors_of_a_block = 128;
  const std::int64_t passes = row_parts == 1 ? 1 : column_parts;
  return passes * plan.problem.m + plan.problem.n + row_parts * column_parts * vectors_of_a_block;
}

// The blocking within the limit that splits least, where `fitting`, made by halving, is one. On an H200 FP64
// products of n = 8192 within 1 GiB spent 3.3 of 15.3 ms on splitting A for each of four panels of columns.
Blocking least_splitting(const Plan& plan, const Blocking& fitting, std::size_t limit) {
  const std::int64_t multiple = block_multiple(plan);
  const auto parts_of = [](std::int64_t length, std::int64_t edge) { return divide_up(length, edge); };
  constexpr std::int64_t most_parts = 16;  // bounds the time of planning
  const std::int64_t max_row_parts = std::min(2 * parts_of(plan.problem.m, fitting.m), 2 * most_parts);
  const std::int64_t max_column_parts = std::min(parts_of(plan.problem.n, fitting.n), most_parts);
  Blocking best = fitting;
  std::int64_t least =
      split_cost(plan, parts_of(plan.problem.m, fitting.m), parts_of(plan.problem.n, fitting.n));
  for (std::int64_t columns = 1; columns <= max_column_parts; ++columns) {
    for (std::int64_t rows = 1; rows <= max_row_parts; ++rows) {
      const Blocking blocking{part_of(plan.problem.m, rows, multiple),
                              part_of(plan.problem.n, columns, multiple)};
      const std::int64_t cost = split_cost(plan, rows, columns);
      if (cost >= least || workspace_bytes(plan, blocking) > limit) continue;
      least = cost;
      best = blocking;
    }
  }
  return best;
}

// Columns of C that a reproducible product computes at once: without a block its sums, 16 bytes an element,
// and the slices of B take memory that the system clears for every call, an eighth of the time at n = 2048.
constexpr std::int64_t columns_on_grid = 512;

}  // namespace

Blocking fit_blocking(const Plan& plan, std::size_t limit) {
  const DeviceEngine* device = plan.engine->device();
  Blocking blocking{plan.problem.m, plan.problem.n};
  if (begins_with_grid(plan)) blocking.n = std::min(blocking.n, columns_on_grid);
  if (device != nullptr && plan.is_native()) {
    blocking.native_scratch_bytes = device->native_scratch_bytes();
    blocking.native_sum_bytes = max_native_sum_bytes(plan);
  }
  while (limit != 0 && workspace_bytes(plan, blocking) > limit) {
    const Blocking smaller = smaller_blocking(blocking, block_multiple(plan));
    if (smaller == blocking) {
      fail(Status::workspace_too_small,
           "a workspace limit of {} bytes is too small for m = {}, n = {}, k = {}: the smallest block needs "
           "{}",
           limit, plan.problem.m, plan.problem.n, plan.problem.k, workspace_bytes(plan, blocking));
    }
    blocking = smaller;
  }
  const bool is_cut = blocking.m < plan.problem.m || blocking.n < plan.problem.n;
  return is_cut && device != nullptr && !plan.is_native() ? least_splitting(plan, blocking, limit) : blocking;
}

}  // namespace kintsugi::core
