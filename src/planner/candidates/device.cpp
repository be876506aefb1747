#include "planner/candidates/device.hpp"

#include <algorithm>

#include "engines/device_engine.hpp"
#include "planner/candidates/candidates.hpp"
#include "planner/candidates/checked.hpp"
#include "planner/element_type.hpp"
#include "schemes/k_block.hpp"
#include "schemes/ozaki2.hpp"

namespace kintsugi::core {

namespace {

// Emulations of a fallback chain, cheapest first.
struct Emulations {
  // Accepts most operands at the cost of by_range.front(), which accepts more of them.
  std::optional<Candidate> by_mean_depth;
  std::vector<Candidate> by_range;

  std::size_t size() const { return by_range.size() + (by_mean_depth ? 1 : 0); }
};

// FP64's candidates have as many moduli as norms prove most often, two more and five more: with still more
// moduli a product of any size takes longer than the native one.
Emulations emulations_by_norms(const Plan& plan) {
  constexpr int max_more = 5;
  std::vector<Candidate> chain = norm_emulations(plan);
  if (!chain.empty()) chain = norm_emulations(plan, chain.front().parameters.moduli + max_more);
  return {.by_mean_depth = std::nullopt, .by_range = std::move(chain)};
}

bool cost_alike(const Plan& plan, const Candidate& x, const Candidate& y) {
  return relative_cost(*plan.engine, x.program) == relative_cost(*plan.engine, y.program);
}

bool rescales(const Schedule& schedule) {
  return std::any_of(schedule.terms.begin(), schedule.terms.end(),
                     [](const Term& term) { return term.rescales; });
}

// Returns the cheapest scheme that a device computes in one kernel without rescaling its sums, which takes
// time. It is proved for operands whose elements lie at a moderate mean depth; candidates that rescale sums
// accept wider dynamic ranges.
std::optional<Candidate> fastest_at_depth(const Plan& plan) {
  constexpr int min_depth = 8;  // uniform and normally distributed numbers, and some deeper ones
  std::optional<Candidate> fastest;
  for (const Scheme* scheme : all_schemes()) {
    const auto candidate = offered(plan, with_window(*scheme, plan.problem.type));
    if (!candidate || !is_fused(plan, *candidate) || rescales(candidate->program.schedule)) continue;
    auto proof = prove(plan, *candidate);
    if (!proof) continue;
    proof->candidate.acceptance.mean_depth = proved_depth(plan, *candidate);
    if (proof->candidate.acceptance.mean_depth < min_depth) continue;
    if (!fastest ||
        relative_cost(*plan.engine, candidate->program) < relative_cost(*plan.engine, fastest->program))
      fastest = proof->candidate;
  }
  return fastest;
}

// Returns the candidate by residues of complex elements, if it is proved to meet the contract.
std::optional<Candidate> proved_complex(const Plan& plan) {
  const auto candidate = offered(plan, with_window(schemes::ozaki2, plan.problem.type));
  if (!candidate || !candidate->program.multiplies_elements()) return std::nullopt;
  const auto proof = prove(plan, *candidate);
  return proof ? std::optional(proof->candidate) : std::nullopt;
}

// Returns the candidate with the k-blocks that the engine runs fastest, if the scheme allows them and stays
// proved for the same dynamic range; else the candidate unchanged.
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

// If a device computes any emulation in one kernel, the chain has only such emulations: their kernels exit
// early when another candidate was selected. Of candidates with equal cost the one with the widest dynamic
// range stays; another one that accepts by mean depth may stand before it. Other products cannot be made
// conditional in a stream, so the chain has only one of them, in the k-blocks that the engine runs fastest;
// it always runs. Complex operands are split into residues by elements, since for other formats the split of
// the embedding takes longer than all products.
Emulations emulations_of(const Plan& plan) {
  if (const auto by_elements = proved_complex(plan)) {
    Emulations chain{.by_mean_depth = std::nullopt, .by_range = norm_emulations(plan)};
    chain.by_range.push_back(*by_elements);
    return chain;
  }
  std::vector<Candidate> fused;
  std::vector<Candidate> others;
  for (const Candidate& candidate : proved_emulations(plan, {.all = true, .native_follows = true})) {
    std::vector<Candidate>& chain = is_fused(plan, candidate) ? fused : others;
    if (!chain.empty() && cost_alike(plan, candidate, chain.back())) chain.pop_back();
    chain.push_back(candidate);
  }
  if (fused.empty()) {
    if (others.empty()) return {};
    Candidate only = in_larger_blocks(plan, others.front());
    only.acceptance.mean_depth = 0;  // since its splits do not find mean depths
    return {.by_mean_depth = std::nullopt, .by_range = {only}};
  }
  Emulations chain{.by_mean_depth = std::nullopt, .by_range = std::move(fused)};
  if (plan.problem.prepared_a || plan.problem.prepared_b) return chain;
  const auto fastest = fastest_at_depth(plan);
  const Candidate& first = chain.by_range.front();
  if (fastest && fastest->scheme != first.scheme && cost_alike(plan, *fastest, first)) {
    chain.by_mean_depth = fastest;
    if (chain.size() == DeviceReport::max_candidates) chain.by_range.pop_back();
  }
  return chain;
}

// True for a prepared operand beside few real vectors. A candidate that it was not prepared for would split
// it again, with thousands of thread blocks whose early exits take up to a tenth of the product's time. A
// batch, whose items share one such launch, was not measured.
bool has_few_vectors_beside_prepared(const Problem& problem, std::int64_t few) {
  if (problem.complex || problem.batch_count > 1) return false;
  return (problem.prepared_b && problem.m <= few) || (problem.prepared_a && problem.n <= few);
}

// Removes candidates that cost too much where they are not selected. A chain keeps its widest one, since
// operands that no emulation accepts take several times as long as others, and the widest of those that cost
// as little as any: of a fast product only these two, since two splits cost more than fp16x3 saves.
void drop_candidates(Emulations& chain, double microseconds, const Problem& problem,
                     const DeviceThresholds& thresholds) {
  if (has_few_vectors_beside_prepared(problem, thresholds.few_vectors)) {
    chain = {.by_mean_depth = std::nullopt, .by_range = {chain.by_range.front()}};
  } else if (microseconds < thresholds.two_candidates_time && chain.size() > 2) {
    chain = {.by_mean_depth = std::nullopt, .by_range = {chain.by_range.front(), chain.by_range.back()}};
  }
}

// Removes mean depths that the splits do not always compute. The split that computes ranges itself computes
// mean depths only for the first candidate's fp16 slices; the kernel that computes ranges before the split
// always does. Scalars in device memory and workspace limits decide which of them runs, and selection may not
// depend on that.
void drop_unreliable_mean_depths(std::vector<Candidate>& chain) {
  const Candidate& first = chain.front();
  if (first.acceptance.mean_depth > 0 && first.program.format().id == FormatId::fp16) return;
  for (Candidate& candidate : chain) candidate.acceptance.mean_depth = 0;
}

// Returns the chain; a candidate that accepts by mean depth is its first. `wide` is by_range.front() before
// candidates were dropped: prepared operands get its slices.
DeviceFallbackChain chain_of(Emulations chain, const Candidate& wide) {
  DeviceFallbackChain result{.candidates = std::move(chain.by_range), .candidate_when_prepared = {}};
  if (chain.by_mean_depth) {
    result.candidates.insert(result.candidates.begin(), *chain.by_mean_depth);
    result.candidate_when_prepared = wide;
  }
  drop_unreliable_mean_depths(result.candidates);
  return result;
}

// Returns the emulations if they are expected to be faster than native; else none, but prepared operands may
// still get the slices of the first. A device whose times were not measured gets none.
DeviceFallbackChain faster_emulations(const Plan& plan, Emulations chain) {
  const Problem& problem = plan.problem;
  if (std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0) return {};
  const Candidate wide = chain.by_range.front();
  const Program& program = wide.program;
  if (!is_fused(plan, wide) && !program.multiplies_elements() && !wide.acceptance.by_norms()) return {};
  const DeviceEngine& device = *plan.engine->device();
  const DeviceThresholds thresholds = device.thresholds();
  const auto times = device.expected_times({.schedule = program.schedule,
                                            .format = program.format().id,
                                            .type = element_type(problem),
                                            .m = problem.m,
                                            .n = problem.n,
                                            .k = problem.k,
                                            .items = problem.batch_count,
                                            .prepared_a = problem.prepared_a,
                                            .prepared_b = problem.prepared_b,
                                            .is_aligned = has_aligned_lines(problem)});
  if (!times) return {};
  const bool is_fast = times->emulated < thresholds.two_candidates_time &&
                       !has_few_vectors_beside_prepared(problem, thresholds.few_vectors);
  const double max_time_ratio = is_fast
                                    ? std::min(thresholds.max_time_ratio, thresholds.max_time_ratio_if_fast)
                                    : thresholds.max_time_ratio;
  if (!plan.request.assumes_gain && times->emulated >= max_time_ratio * times->native)
    return {.candidates = {}, .candidate_when_prepared = wide};
  drop_candidates(chain, times->emulated, problem, thresholds);
  return chain_of(std::move(chain), wide);
}

DeviceFallbackChain emulations_by_policy(const Plan& plan) {
  if (plan.request.policy == Policy::native) return {};
  Emulations chain = plan.problem.type == OperandType::f32 ? emulations_of(plan)
                     : has_native_fallback(plan)           ? emulations_by_norms(plan)
                                                           : Emulations{};
  if (chain.by_range.empty()) return {};
  if (plan.request.policy == Policy::automatic) return faster_emulations(plan, std::move(chain));
  const Candidate wide = chain.by_range.front();
  return chain_of(std::move(chain), wide);
}

}  // namespace

DeviceFallbackChain device_candidates(const Plan& plan) {
  DeviceFallbackChain chain = emulations_by_policy(plan);
  Candidate native{.acceptance = accepts_all};
  native.fixed_order =
      !chain.candidates.empty();  // after emulations a kernel of ours, else the vendor library
  chain.candidates.push_back(native);
  return chain;
}

}  // namespace kintsugi::core
