#include "planner/candidates/device.hpp"

#include <algorithm>

#include "engines/device_engine.hpp"
#include "planner/candidates/candidates.hpp"
#include "planner/candidates/checked.hpp"
#include "schemes/k_block.hpp"
#include "schemes/ozaki2.hpp"

namespace kintsugi::core {

namespace {

// Emulations of a fallback chain, cheapest first.
struct Emulations {
  // Accepts most operands, at the cost of wide.front(), which accepts more.
  std::optional<Candidate> likely;
  std::vector<Candidate> wide;

  std::size_t size() const { return wide.size() + (likely ? 1 : 0); }
};

bool cost_alike(const Plan& plan, const Candidate& x, const Candidate& y) {
  return relative_cost(*plan.engine, x.program) == relative_cost(*plan.engine, y.program);
}

bool rescales(const Schedule& schedule) {
  return std::any_of(schedule.terms.begin(), schedule.terms.end(),
                     [](const Term& term) { return term.rescales; });
}

// The cheapest scheme that a device computes in one kernel without rescaling its sums, which takes longer:
// proved for operands whose elements lie at a moderate mean depth, where rescaled sums hold wider dynamic
// ranges.
std::optional<Candidate> quickest_at_depth(const Plan& plan) {
  constexpr int least_depth = 8;  // of elements like uniform numbers and normal deviates, and somewhat deeper
  std::optional<Candidate> quickest;
  for (const Scheme* scheme : all_schemes()) {
    const auto candidate = offered(plan, with_window(*scheme, plan.problem.type));
    if (!candidate || !is_fused(plan, *candidate) || rescales(candidate->program.schedule)) continue;
    auto proof = prove(plan, *candidate);
    if (!proof) continue;
    proof->candidate.acceptance.mean_depth = proved_depth(plan, *candidate);
    if (proof->candidate.acceptance.mean_depth < least_depth) continue;
    if (!quickest ||
        relative_cost(*plan.engine, candidate->program) < relative_cost(*plan.engine, quickest->program))
      quickest = proof->candidate;
  }
  return quickest;
}

// Complex products by residues of elements, where they are proved to meet the contract.
std::optional<Candidate> proved_complex(const Plan& plan) {
  const auto candidate = offered(plan, with_window(schemes::ozaki2, plan.problem.type));
  if (!candidate || !candidate->program.multiplies_elements()) return std::nullopt;
  const auto proof = prove(plan, *candidate);
  return proof ? std::optional(proof->candidate) : std::nullopt;
}

// The same scheme with the k-blocks that the engine runs best, where it takes them and stays proved.
Candidate in_larger_blocks(const Plan& plan, const Candidate& candidate) {
  const Scheme& scheme = *candidate.scheme;
  if (is_fused(plan, candidate) || !schemes::takes_block(scheme)) return candidate;
  const auto block = static_cast<int>(plan.engine->device()->preferred_block());
  Plan with_accumulator = plan;
  with_accumulator.request.accumulator = candidate.accumulator;
  const auto larger =
      offered(with_accumulator, {&scheme, schemes::program_in_blocks(scheme, block), {.block = block}});
  const auto proof = larger ? prove(plan, *larger) : std::nullopt;
  return proof && proof->candidate.acceptance.dynamic_range >= candidate.acceptance.dynamic_range
             ? proof->candidate
             : candidate;
}

// Where a device computes any emulation in one kernel, those alone: their kernels exit early where another
// candidate was selected. Of those that cost the same the one with the widest dynamic range stays, and before
// it a likely one. A stream cannot skip other products, so that of these there is one candidate, in blocks
// that the engine runs best; it runs always. Complex operands are split by elements into residues, since for
// other formats the split of the embedding takes longer than all products.
Emulations emulations_of(const Plan& plan) {
  if (const auto by_elements = proved_complex(plan)) {
    Emulations chain{std::nullopt, norm_emulations(plan)};
    chain.wide.push_back(*by_elements);
    return chain;
  }
  std::vector<Candidate> fused;
  std::vector<Candidate> others;
  for (const Candidate& candidate : proved_emulations(plan, true, true)) {
    std::vector<Candidate>& chain = is_fused(plan, candidate) ? fused : others;
    if (!chain.empty() && cost_alike(plan, candidate, chain.back())) chain.pop_back();
    chain.push_back(candidate);
  }
  if (fused.empty()) {
    if (others.empty()) return {};
    Candidate only = in_larger_blocks(plan, others.front());
    only.acceptance.mean_depth = 0;  // its splits do not find mean depths
    return {std::nullopt, {only}};
  }
  Emulations chain{std::nullopt, std::move(fused)};
  if (plan.problem.prepared_a || plan.problem.prepared_b) return chain;
  const auto quickest = quickest_at_depth(plan);
  const Candidate& first = chain.wide.front();
  if (quickest && quickest->scheme != first.scheme && cost_alike(plan, *quickest, first)) {
    chain.likely = quickest;
    if (chain.size() == DeviceReport::most_candidates) chain.wide.pop_back();
  }
  return chain;
}

// A prepared operand beside few real vectors: a candidate that it was not prepared for would split it again,
// by thousands of thread blocks that take up to a tenth of the product's time to exit early. A batch, whose
// items one such kernel serves together, was not measured.
bool is_short_beside_prepared(const Problem& problem, std::int64_t few) {
  if (problem.complex || problem.batch_count > 1) return false;
  return (problem.prepared_b && problem.m <= few) || (problem.prepared_a && problem.n <= few);
}

// A candidate that is not selected costs its launches. A short product has one candidate alone, which accepts
// wide dynamic ranges, and one of moderate length but one more, which accepts the widest.
void leave_out_for_time(Emulations& chain, double microseconds, const Problem& problem,
                        const DeviceThresholds& thresholds) {
  if (microseconds < thresholds.one_candidate_time ||
      is_short_beside_prepared(problem, thresholds.few_vectors)) {
    chain = {std::nullopt, {chain.wide.front()}};
  } else if (microseconds < thresholds.two_candidates_time && chain.size() > 2) {
    if (chain.likely) {
      chain.wide = {chain.wide.back()};
    } else {
      chain.wide = {chain.wide.front(), chain.wide.back()};
    }
  }
}

// The split that finds ranges on the way finds mean depths for the first candidate's fp16 slices alone; the
// kernel that finds ranges before finds them always. Selection may not depend on which of them runs, which
// scalars in device memory and workspace limits decide.
void leave_out_depths(std::vector<Candidate>& chain) {
  const Candidate& first = chain.front();
  if (first.acceptance.mean_depth > 0 && first.program.format().id == FormatId::fp16) return;
  for (Candidate& candidate : chain) candidate.acceptance.mean_depth = 0;
}

// Prepared operands have the slices of `wide`.
DeviceFallbackChain chain_of(Emulations chain, const Candidate& wide) {
  DeviceFallbackChain result{std::move(chain.wide), std::nullopt};
  if (chain.likely) {
    result.candidates.insert(result.candidates.begin(), *chain.likely);
    result.candidate_when_prepared = wide;
  }
  leave_out_depths(result.candidates);
  return result;
}

// Where the device was never measured, no emulation is quicker.
DeviceFallbackChain quicker_emulations(const Plan& plan, Emulations chain) {
  const Problem& problem = plan.problem;
  if (std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0) return {};
  const Candidate wide = chain.wide.front();
  const Program& program = wide.program;
  if (!is_fused(plan, wide) && !program.multiplies_elements()) return {};
  const DeviceEngine& device = *plan.engine->device();
  const DeviceThresholds thresholds = device.thresholds();
  const auto times =
      device.expected_times({program.schedule, program.format().id, problem.complex, problem.m, problem.n,
                             problem.k, problem.batch_count, problem.prepared_a, problem.prepared_b});
  if (!times) return {};
  if (times->emulated >= thresholds.least_gain * times->native) return {{}, wide};
  leave_out_for_time(chain, times->emulated, problem, thresholds);
  return chain_of(std::move(chain), wide);
}

DeviceFallbackChain emulations_by_policy(const Plan& plan) {
  if (plan.request.policy == Policy::native || plan.problem.type != OperandType::f32) return {};
  Emulations chain = emulations_of(plan);
  if (chain.wide.empty()) return {};
  if (plan.request.policy == Policy::automatic) return quicker_emulations(plan, std::move(chain));
  const Candidate wide = chain.wide.front();
  return chain_of(std::move(chain), wide);
}

}  // namespace

DeviceFallbackChain device_candidates(const Plan& plan) {
  DeviceFallbackChain chain = emulations_by_policy(plan);
  Candidate native{nullptr, Accumulator::fp32, accepts_all};
  native.fixed_order =
      !chain.candidates.empty();  // behind emulations an own kernel, else the vendor library's
  chain.candidates.push_back(native);
  return chain;
}

}  // namespace kintsugi::core
