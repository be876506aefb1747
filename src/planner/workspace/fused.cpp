#include "planner/workspace/fused.hpp"

#include <algorithm>

#include "engines/device_engine.hpp"
#include "planner/candidates/candidates.hpp"
#include "planner/element_type.hpp"

namespace kintsugi::core {

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
    bytes = std::max(bytes, plan.engine->device()->fused_scratch_bytes(shape_of(plan, candidate, blocking)));
  return bytes;
}

// Returns the counters of the candidate with the most counters. One step clears them before the selection.
DeviceCounters most_counters(const Plan& plan, const Blocking& blocking, std::byte* scratch) {
  DeviceCounters counters;
  for (const Candidate& candidate : emulations(plan)) {
    const DeviceCounters candidate_counters =
        plan.engine->device()->fused_counters(shape_of(plan, candidate, blocking), scratch);
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

}  // namespace kintsugi::core
