// Workspace of a plan and the blocking that makes it fit a limit.
#include <algorithm>

#include "arith/range.hpp"
#include "arith/rounding_margin.hpp"
#include "engines/device.hpp"
#include "plan/checked.hpp"
#include "plan/device_fused.hpp"
#include "plan/device_native.hpp"
#include "plan/device_pieces.hpp"
#include "plan/error_free.hpp"
#include "plan/plan.hpp"
#include "plan/residue_scales.hpp"
#include "recombine/exact_sums.hpp"
#include "splits/equilibrate.hpp"
#include "splits/slices.hpp"

namespace kintsugi::core {

namespace {

std::size_t exact_bytes(const Problem& problem, int threads) {
  return with_entry_type(problem,
                         [&]<class T>() { return exact_scratch_bytes<T>(problem.products(), threads); });
}

// What plan/checked.cpp takes besides a candidate's slices and sums.
std::size_t check_bytes(const Plan& plan, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  return array_bytes(problem.m, 1, sizeof(RoundingMargin)) +
         array_bytes(problem.vectors_b(), 1, sizeof(RoundingMargin)) +
         2 * array_bytes(problem.products(), 1, sizeof(InnerRange)) +
         2 * array_bytes(problem.products(), 1, sizeof(double)) + array_bytes(blocking.m, blocking.n, 1) +
         exact_bytes(problem, plan.threads);
}

// What take_block (plan/steps.hpp) takes.
std::size_t block_bytes(const Plan& plan, const Program& program, const Blocking& blocking) {
  const SliceStorage storage = plan.engine->slice_storage(program.format().id);
  const bool entries = program.multiplies_entries();
  const std::int64_t k = entries ? plan.problem.k : plan.problem.products();
  const std::int64_t columns = (entries ? 1 : plan.problem.parts()) * blocking.n;
  const Accumulators sums = make_accumulators(program.sum_type(plan.engine->reduces_sums()), blocking.m,
                                              columns, program.schedule.sums());
  return make_slices(program.format(), storage, program.split_a.slices, blocking.m, k).bytes() +
         make_slices(program.format(), storage, program.split_b.slices, columns, k).bytes() + sums.bytes() +
         plan.engine->scratch_bytes(program.schedule, program.format().id, k, plan.threads);
}

std::size_t candidate_bytes(const Plan& plan, const Candidate& candidate, const Blocking& blocking) {
  const Problem& problem = plan.problem;
  const Program& program = candidate.program;
  const std::size_t ranges = plan.is_native() ? 0
                                              : array_bytes(problem.m, 1, sizeof(VectorRange)) +
                                                    array_bytes(problem.vectors_b(), 1, sizeof(VectorRange));
  if (candidate.scheme == nullptr) return ranges + native_scratch_bytes(plan, candidate, blocking);
  if (program.recombination == Recombination::exact_sums) {
    return ranges + exact_bytes(problem, plan.threads);
  }
  if (program.recombination == Recombination::error_free)
    return ranges + error_free_bytes(plan, candidate, blocking);
  const std::size_t block = block_bytes(plan, program, blocking);
  if (program.split_a.scales == ScaleRule::product)
    return ranges + std::max(block, product_scale_bytes(problem) +
                                        block_bytes(plan, magnitude_above_program, blocking));
  if (!candidate.checked) return ranges + block;
  return ranges + check_bytes(plan, blocking) +
         std::max(block, block_bytes(plan, magnitude_program, blocking));
}

std::int64_t half(std::int64_t length, std::int64_t multiple) {
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
  std::size_t most = 0;
  for (const Candidate& candidate : plan.candidates)
    most = std::max(most, candidate_bytes(plan, candidate, blocking));
  return most;
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
  if (blocking.m >= blocking.n && blocking.m > multiple) return {half(blocking.m, multiple), blocking.n};
  if (blocking.n > multiple) return {blocking.m, half(blocking.n, multiple)};
  return blocking;
}

Blocking fit_blocking(const Plan& plan, std::size_t limit) {
  const DeviceEngine* device = plan.engine->device();
  Blocking blocking{plan.problem.m, plan.problem.n};
  if (device != nullptr && plan.is_native()) {
    blocking.native_scratch_bytes = device->native_scratch_bytes();
    blocking.native_sum_bytes = most_native_sum_bytes(plan);
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
  return blocking;
}

}  // namespace kintsugi::core
