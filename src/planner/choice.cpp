#include "planner/candidates.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "base/status.hpp"
#include "engines/cuda/select/selected_moduli.hpp"
#include "engines/cuda/steps.hpp"
#include "planner/expected_times.hpp"
#include "planner/limits.hpp"
#include "planner/memory.hpp"
#include "planner/plan.hpp"
#include "planner/problem.hpp"
#include "planner/steps.hpp"
#include "schemes/bf16x6_direct.hpp"
#include "schemes/bound.hpp"
#include "schemes/mixpert.hpp"
#include "schemes/ozaki2.hpp"
#include "schemes/program.hpp"
#include "schemes/superaccumulator.hpp"

namespace kintsugi::core {

namespace {

constexpr const Scheme* levels[] = {&schemes::mixpert_1, &schemes::mixpert_2, &schemes::mixpert_3,
                                    &schemes::mixpert_4, &schemes::mixpert_full};

SchemeVariant with_depth(const Scheme& scheme, int depth) {
  Program program = scheme.program;
  schemes::set_tile_depth(program, depth);
  return {&scheme, program, {.tile = depth == schemes::mixpert_depth ? 0 : depth}};
}

// A candidate with its expected times.
struct TimedLevel {
  Candidate candidate;
  DeviceTimes times;
};

std::optional<TimedLevel> proved_level(const Plan& plan, const SchemeVariant& variant) {
  const auto candidate = offered(plan, variant);
  if (!candidate || fused_kernel(plan, *candidate) == nullptr) return std::nullopt;
  const auto proof = prove(plan, *candidate);
  if (!proof) return std::nullopt;
  const auto times = expected_device_times(plan, proof->candidate);
  return times ? std::optional(TimedLevel{proof->candidate, *times}) : std::nullopt;
}

std::optional<TimedLevel> fastest_proved_level(const Plan& plan) {
  std::optional<TimedLevel> fastest;
  for (const Scheme* scheme : levels) {
    for (int depth = schemes::mixpert_depth; depth <= deepest_tile; depth *= 2) {
      auto level = proved_level(plan, with_depth(*scheme, depth));
      if (level && (!fastest || level->times.emulated < fastest->times.emulated)) fastest = std::move(level);
    }
  }
  return fastest;
}

bool is_empty(const Problem& problem) {
  return std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0;
}

// MixPert's levels: returns the level that pays as the first candidate of a chain, before emulations that
// have no exponents per tile; nothing if none does, or if no level is proved to meet the contract. Of the
// levels and depths of a tile that are proved, the fastest is tested.
//
// A level accepts operands by the range of all their elements together, which is narrow in few of them. If it
// refuses them, its splits were in vain, and the chain goes on with `second` instead of `fastest`. A level
// pays if the time that it is expected to save is longer than the time that refusals are expected to cost.
// `fastest`: first candidate of the chain without a level; `second`: the candidate that follows a level. Both
// may be the same.
std::optional<Candidate> level_that_pays(const Plan& plan, const Candidate& fastest,
                                         const Candidate& second) {
  if (is_empty(plan.problem)) return std::nullopt;
  const auto level = fastest_proved_level(plan);
  const auto time = expected_device_times(plan, fastest);
  if (!level || !time) return std::nullopt;
  const double max_time = cuda::thresholds().max_time_ratio * time->emulated;
  if (level->times.emulated >= max_time) return std::nullopt;
  // Operands are prepared by the first candidate, so that the second one splits them in every call.
  const double saved = time->emulated - level->times.emulated;
  const double splits =
      level->times.emulated - expected_device_times(plan, level->candidate, Slicing::both_prepared)->emulated;
  const double second_time = expected_device_times(plan, second, Slicing::none_prepared)->emulated;
  const double lost = splits + second_time - time->emulated;
  return saved > limits::refusals_of_level * lost ? std::optional(level->candidate) : std::nullopt;
}

// A fallback chain, and Plan::candidate_when_prepared.
struct Chain {
  std::vector<Candidate> candidates;
  std::optional<Candidate> candidate_when_prepared;
};

// Emulations of a fallback chain: first `by_mean_depth`, if there is one, then `others`. Only one of
// `by_mean_depth` and a level of MixPert, which is then the first of `others`, is in a chain.
struct Emulations {
  // Candidate that accepts operands by mean depth. It is faster than others.front() but accepts fewer
  // operands.
  std::optional<Candidate> by_mean_depth;
  std::vector<Candidate> others;  // the cheapest first

  std::size_t size() const { return others.size() + (by_mean_depth ? 1 : 0); }
};

// Number of multiply-adds of the problem's elements.
double multiply_adds(const Problem& problem) {
  const double parts = problem.complex ? 2 : 1;
  return static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k) *
         parts * parts;
}

// Returns for each candidate for FP64 how many moduli it has more than the first, where candidates have
// kernels of their own. The first has as many moduli as norms need for most operands. Where native takes tens
// of times as long, a candidate as wide as the widest one of `exact` precedes it, whatever early exits take.
std::vector<int> more_moduli(const Problem& problem) {
  if (cuda::has_few_fp64_units()) return {0, 2, 16};
  const double elements = static_cast<double>(problem.m) * static_cast<double>(problem.n);
  const double products = multiply_adds(problem);
  if (products < limits::short_products) return {0};
  if (products >= limits::long_products) return {0, 2, 4};
  if (products < limits::medium_products || elements > limits::elements_of_tile) return {0, 2};
  return {0, 1, 2};
}

// Returns a candidate for the least number of moduli and each greater one up to the most that the device's
// shared kernels take, as long as it is expected to be faster than native. Returns nothing if those after the
// first cannot share kernels.
std::vector<Candidate> norm_emulations_with_shared_kernels(const Plan& plan) {
  if (!cuda::splits_selected_at_once(plan.problem.k)) return {};
  std::vector<int> more(LongDeviceReport::max_candidates - 1);
  std::iota(more.begin(), more.end(), 0);
  std::vector<Candidate> chain = norm_emulations(plan, more);
  while (chain.size() > 2 && !may_share_kernels(plan, chain[1], chain.back())) chain.pop_back();
  if (chain.size() <= 2) return {};
  const auto slower = std::find_if(chain.begin() + 1, chain.end(), [&](const Candidate& candidate) {
    return !precedes_native(plan, candidate);
  });
  chain.erase(slower, chain.end());
  // Those that are left may all have too few moduli for the shared kernels.
  if (chain.size() > 2 && !may_share_kernels(plan, chain[1], chain.back())) return {};
  return chain;
}

Emulations emulations_by_norms(const Plan& plan) {
  std::vector<Candidate> chain;
  if (multiply_adds(plan.problem) >= limits::short_products)
    chain = norm_emulations_with_shared_kernels(plan);
  if (chain.empty()) chain = norm_emulations(plan, more_moduli(plan.problem));
  return {.by_mean_depth = std::nullopt, .others = std::move(chain)};
}

bool have_equal_cost(const Plan& plan, const Candidate& x, const Candidate& y) {
  return relative_cost(*plan.engine, x.program) == relative_cost(*plan.engine, y.program);
}

bool rescales(const Schedule& schedule) {
  return std::any_of(schedule.terms.begin(), schedule.terms.end(),
                     [](const Term& term) { return term.rescales; });
}

// Returns the fastest proved scheme that a device computes in one kernel, without rescaled terms. It accepts
// operands of moderate mean depths. (Schemes with rescaled terms take longer but accept wider dynamic
// ranges.)
std::optional<Candidate> fastest_at_depth(const Plan& plan) {
  std::optional<Candidate> fastest;
  for (const Scheme* scheme : all_schemes()) {
    const auto candidate = offered(plan, with_window(*scheme, plan.problem.type));
    if (!candidate || fused_kernel(plan, *candidate) == nullptr || rescales(candidate->program.schedule))
      continue;
    auto proof = prove(plan, *candidate);
    if (!proof) continue;
    proof->candidate.acceptance.mean_depth = proved_depth(plan, *candidate);
    if (proof->candidate.acceptance.mean_depth < limits::min_mean_depth) continue;
    if (!fastest ||
        relative_cost(*plan.engine, candidate->program) < relative_cost(*plan.engine, fastest->program))
      fastest = proof->candidate;
  }
  return fastest;
}

// Returns the candidate that multiplies residues of complex elements, if it is proved to meet the contract.
std::optional<Candidate> proved_complex(const Plan& plan) {
  const auto candidate = offered(plan, with_window(schemes::ozaki2, plan.problem.type));
  if (!candidate || !candidate->program.multiplies_elements()) return std::nullopt;
  const auto proof = prove(plan, *candidate);
  return proof ? std::optional(proof->candidate) : std::nullopt;
}

// Returns the candidate with the k-blocks that the engine runs fastest. Returns the candidate unchanged if
// the scheme does not allow these k-blocks, or if it is then not proved for the same dynamic range.
Candidate in_larger_blocks(const Plan& plan, const Candidate& candidate) {
  const Scheme& scheme = *candidate.scheme;
  if (fused_kernel(plan, candidate) != nullptr || !schemes::takes_block(scheme)) return candidate;
  const auto block = static_cast<int>(cuda::preferred_block);
  Plan with_accumulator = plan;
  with_accumulator.request.accumulator = candidate.accumulator;
  const auto larger =
      offered(with_accumulator, {&scheme, schemes::program_in_blocks(scheme, block), {.block = block}});
  const auto proof = larger ? prove(plan, *larger) : std::nullopt;
  return proof && proof->candidate.acceptance.dynamic_range >= candidate.acceptance.dynamic_range
             ? proof->candidate
             : candidate;
}

// True if one operand is prepared and the other operand has few real vectors. Every candidate except the
// first would have to split the prepared operand again. Even if that split is not needed, the early exits of
// its thousands of thread blocks take up to a tenth of the product's time. False for batches, which were not
// measured.
bool multiplies_prepared_by_few(const Problem& problem, std::int64_t few) {
  if (problem.complex || problem.batch_count > 1) return false;
  return (problem.prepared_b && problem.m <= few) || (problem.prepared_a && problem.n <= few);
}

// Returns the candidate that accepts by mean depth and may precede the emulations of a chain.
std::optional<Candidate> before_others(const Plan& plan, const Candidate& first) {
  if (plan.problem.prepared_a || plan.problem.prepared_b) return std::nullopt;
  const auto fastest = fastest_at_depth(plan);
  const bool precedes = fastest && fastest->scheme != first.scheme && have_equal_cost(plan, *fastest, first);
  return precedes ? fastest : std::nullopt;
}

std::vector<Candidate> followed_by(const Candidate& first, const std::vector<Candidate>& others) {
  std::vector<Candidate> all{first};
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// Returns the chain with a level of MixPert as its first emulation, if that pays, or else with the candidate
// that accepts by mean depth, if there is one.
Emulations with_fastest(const Plan& plan, Emulations chain) {
  const Candidate& first = chain.others.front();
  chain.by_mean_depth = before_others(plan, first);
  const std::int64_t few = cuda::thresholds().few_vectors;
  // With few vectors beside a prepared operand, the chain will have one emulation, which should be wide.
  const auto level = multiplies_prepared_by_few(plan.problem, few)
                         ? std::nullopt
                         : level_that_pays(plan, chain.by_mean_depth ? *chain.by_mean_depth : first, first);
  if (level) chain = {.by_mean_depth = std::nullopt, .others = followed_by(*level, chain.others)};
  // One place in the report is needed for the native candidate, which is added later.
  if (chain.size() == DeviceReport::max_candidates) chain.others.pop_back();
  return chain;
}

// Returns the emulations of FP32 operands, before the policy drops some.
//
// - Complex operands are split into residues of their elements if possible. In other formats the split of the
//   embedding takes longer than all products.
// - Otherwise the chain has the emulations that the device computes in one kernel, which exits early if
//   another candidate is selected. Among candidates of equal cost, the one with the widest dynamic range
//   stays. A candidate that accepts by mean depth, or a level of MixPert, may precede them.
// - If the device has no such kernels, the chain has a single emulation, in the k-blocks that the engine runs
//   fastest. Its products always run, since calls of the vendor library cannot be made conditional in a
//   stream.
Emulations emulations_of(const Plan& plan) {
  if (const auto by_elements = proved_complex(plan)) {
    Emulations chain{.by_mean_depth = std::nullopt, .others = norm_emulations(plan)};
    chain.others.push_back(*by_elements);
    return chain;
  }
  std::vector<Candidate> fused;
  std::vector<Candidate> unfused;
  for (const Candidate& candidate :
       proved_emulations(plan, {.include_slower = true, .native_follows = true})) {
    std::vector<Candidate>& chain = fused_kernel(plan, candidate) != nullptr ? fused : unfused;
    if (!chain.empty() && have_equal_cost(plan, candidate, chain.back())) chain.pop_back();
    chain.push_back(candidate);
  }
  if (fused.empty()) {
    if (unfused.empty()) return {};
    Candidate only = in_larger_blocks(plan, unfused.front());
    only.acceptance.mean_depth = 0;  // this candidate's splits do not compute mean depths
    return {.by_mean_depth = std::nullopt, .others = {only}};
  }
  return with_fastest(plan, {.by_mean_depth = std::nullopt, .others = std::move(fused)});
}

// Removes candidates whose early exits cost more time than the candidates save.
// - A product of a prepared operand and few vectors keeps only the candidate for which the operand was
//   prepared.
// - A product of a few microseconds keeps two candidates: the cheapest one, and the widest one, since native
//   takes several times as long as any emulation. The candidate that accepts by mean depth (fp16x3) saves
//   less than its second split costs; in place of the cheapest one it takes 35 instead of 32 us at n = 1024,
//   and it does not accept data of phi 2.
void drop_candidates(Emulations& chain, double microseconds, const Problem& problem,
                     const DeviceThresholds& thresholds) {
  if (multiplies_prepared_by_few(problem, thresholds.few_vectors)) {
    chain = {.by_mean_depth = std::nullopt, .others = {chain.others.front()}};
  } else if (microseconds < thresholds.two_candidates_time && chain.size() > 2) {
    chain = {.by_mean_depth = std::nullopt, .others = {chain.others.front(), chain.others.back()}};
  }
}

// Removes acceptance by mean depth unless mean depths are computed in every call. Either a kernel before the
// split or the split itself computes the ranges. The kernel always computes mean depths; the split computes
// mean depths only if the first candidate has fp16 slices. The place of the scalars and the workspace limit
// decide whether the kernel is used. They must not influence the selection, since the selection decides the
// bits of C. If the first candidate has exponents per tile, the kernel is used whenever a candidate accepts
// by mean depth.
void drop_unreliable_mean_depths(std::vector<Candidate>& chain) {
  const Candidate& first = chain.front();
  if (has_tiles(first.program)) return;
  if (first.acceptance.mean_depth > 0 && first.program.format().id == FormatId::fp16) return;
  for (Candidate& candidate : chain) candidate.acceptance.mean_depth = 0;
}

// Returns the emulations as a chain. `for_prepared`: the candidate by which operands are prepared, which is
// others.front() before candidates were dropped.
Chain chain_of(Emulations emulations, const Candidate& for_prepared) {
  Chain result{.candidates = std::move(emulations.others), .candidate_when_prepared = {}};
  if (emulations.by_mean_depth) {
    result.candidates.insert(result.candidates.begin(), *emulations.by_mean_depth);
    result.candidate_when_prepared = for_prepared;
  }
  drop_unreliable_mean_depths(result.candidates);
  return result;
}

// Returns the emulations if they are expected to be faster than native. Otherwise returns a chain without
// emulations, which still has the candidate for prepared operands: emulation may be faster in a later call
// that saves the split. Returns an empty chain if the device's times were not measured.
Chain faster_emulations(const Plan& plan, Emulations chain) {
  const Problem& problem = plan.problem;
  if (std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0) return {};
  const Candidate for_prepared = chain.others.front();
  const DeviceThresholds thresholds = cuda::thresholds();
  const auto times = expected_device_times(plan, for_prepared);
  if (!times) return {};
  const bool by_few = multiplies_prepared_by_few(problem, thresholds.few_vectors);
  const bool is_fast = times->emulated < thresholds.two_candidates_time && !by_few;
  double max_time_ratio = by_few ? thresholds.max_time_ratio_by_few : thresholds.max_time_ratio;
  if (for_prepared.acceptance.by_norms())
    max_time_ratio = std::min(max_time_ratio, thresholds.max_time_ratio_by_norms);
  if (is_fast) max_time_ratio = std::min(max_time_ratio, thresholds.max_time_ratio_if_fast);
  if (!plan.request.assumes_gain && times->emulated >= max_time_ratio * times->native)
    return {.candidates = {}, .candidate_when_prepared = for_prepared};
  drop_candidates(chain, times->emulated, problem, thresholds);
  return chain_of(std::move(chain), for_prepared);
}

// Returns the candidate whose kernel splits operands while it multiplies, if it is expected to be faster than
// `other`, and under the policy automatic than native. It accepts all operands, so no candidate follows it.
// Bits of emulate may depend on neither layout nor preparation, so these have no influence there.
std::optional<Candidate> direct_candidate(const Plan& plan, const Candidate& other) {
  const Problem& problem = plan.problem;
  // Calibration measures the other candidates.
  if (problem.type != OperandType::f32 || problem.complex || is_empty(problem) || plan.request.assumes_gain)
    return std::nullopt;
  const auto candidate = offered(plan, with_window(schemes::bf16x6_direct, problem.type));
  if (!candidate || fused_kernel(plan, *candidate) == nullptr) return std::nullopt;
  const ErrorBound bound = error_bound(candidate->program, candidate->accumulator, problem.k,
                                       /*a_in_window=*/true, /*b_in_window=*/true);
  if (relative_bound(candidate->program, bound, problem.type, problem.k, 0, 0) > plan.contract.coefficient)
    return std::nullopt;
  const bool is_automatic = plan.request.policy == Policy::automatic;
  const auto times =
      is_automatic ? expected_device_times(plan, *candidate) : expected_times_in_any_layout(plan, *candidate);
  const auto others =
      is_automatic ? expected_device_times(plan, other) : expected_times_in_any_layout(plan, other);
  if (!times || (others && times->emulated >= others->emulated)) return std::nullopt;
  const bool gains = !is_automatic || (times->native >= limits::least_native_microseconds &&
                                       times->emulated < limits::max_time_ratio_of_direct * times->native);
  return gains ? candidate : std::nullopt;
}

// Returns the emulations of a device that no element of C needs to check, as the policy allows them.
Chain emulations_on_device(const Plan& plan) {
  if (plan.request.policy == Policy::native) return {};
  Emulations chain = plan.problem.type == OperandType::f32 ? emulations_of(plan)
                     : has_native_fallback(plan)           ? emulations_by_norms(plan)
                                                           : Emulations{};
  if (chain.others.empty()) return {};
  if (const auto direct = direct_candidate(plan, chain.others.front()))
    return {.candidates = {*direct}, .candidate_when_prepared = chain.others.front()};
  if (plan.request.policy == Policy::automatic) return faster_emulations(plan, std::move(chain));
  const Candidate for_prepared = chain.others.front();
  return chain_of(std::move(chain), for_prepared);
}

// Returns the native candidate. On the host it has a fixed order under the policy emulate; native products of
// double-double numbers, and all native products of the reference engine, always have one. On a device a
// kernel of Kintsugi multiplies after emulations, since a call of the vendor library cannot be conditional.
Candidate native_after(const Plan& plan, const std::vector<Candidate>& emulations) {
  Candidate native{.acceptance = accepts_all};
  native.fixed_order = plan.engine->is_device()
                           ? !emulations.empty()
                           : plan.request.policy == Policy::emulate || plan.problem.type == OperandType::dd ||
                                 plan.engine->native_order_is_fixed();
  return native;
}

// Returns the emulations of an engine of the host that no element of C needs to check. If native follows, the
// policy automatic leaves out those that are not expected to be faster.
Chain emulations_on_host(const Plan& plan, bool native_follows) {
  const Policy policy = plan.request.policy;
  if (policy == Policy::native) return {};
  const bool include_slower = policy == Policy::emulate || !native_follows;
  std::vector<Candidate> chain =
      proved_emulations(plan, {.include_slower = include_slower, .native_follows = native_follows});
  std::vector<Candidate> by_norms = norm_emulations(plan);
  const auto is_slower = [&](const Candidate& candidate) {
    return include_slower ? !chain.empty() && relative_cost(*plan.engine, candidate.program) >=
                                                  relative_cost(*plan.engine, chain.front().program)
                          : !is_expected_faster(plan, candidate.program);
  };
  std::erase_if(by_norms, is_slower);
  chain.insert(chain.begin(), by_norms.begin(), by_norms.end());
  return {.candidates = std::move(chain), .candidate_when_prepared = {}};
}

// True if the first of the candidates `chain` is expected to be faster than the native double-double product.
bool beats_native_double_double(const Plan& plan, const std::vector<Candidate>& chain) {
  const Problem& problem = plan.problem;
  if (problem.type != OperandType::dd) return false;
  const ExpectedTimes times = expected_times(*plan.engine, chain.front().program, problem, plan.conditions());
  return times.emulated < limits::max_time_ratio_on_host * plan.engine->native_double_double_time_ratio() *
                              multiply_adds(problem);
}

// Returns the checked candidates if the contract needs them and the policy allows them; else none.
std::vector<Candidate> checked_by_policy(const Plan& plan) {
  const bool must_emulate =
      plan.request.policy == Policy::emulate || !native_meets(plan.contract, plan.problem);
  if (plan.request.policy == Policy::native || !(must_emulate || plan.problem.type == OperandType::dd))
    return {};
  if (!needs_checks(plan)) return {};
  std::vector<Candidate> chain = checked_emulations(plan);
  return must_emulate || beats_native_double_double(plan, chain) ? chain : std::vector<Candidate>{};
}

[[noreturn]] void fail_unreachable(const Plan& plan) {
  const Problem& problem = plan.problem;
  fail(Status::contract_unreachable,
       "accuracy \"{}\" allows {:.3g} of |A||B| at k = {}; under policy \"{}\" no program for {} operands on "
       "engine {} is proved to give that (the native product is proved for {:.3g})",
       plan.accuracy_text(), plan.contract.coefficient, problem.k, plan.settings[SettingId::policy].value,
       element_type_name(problem.type, problem.complex), plan.engine->name(),
       native_coefficient(problem.type, problem.products()));
}

// Fails with not_supported: no program rounds C as the call asks.
[[noreturn]] void fail_directed(const Plan& plan) {
  const char* const name = rounding_name(plan.rounding);
  fail(Status::not_supported,
       "{}, and only accuracy exact of f32, f64, c32 and c64 products rounds so, by the scheme "
       "superaccumulator or by none named; accuracy here: \"{}\", scheme: \"{}\", type: {}. "
       "rounding = nearest permits all others",
       plan.request.rounding ? fmt::format("rounding = \"{}\"", name)
                             : fmt::format("the calling thread's rounding mode is {}", name),
       plan.accuracy_text(), plan.request.scheme, element_type_name(plan.problem.type, plan.problem.complex));
}

// Returns the candidates for a mode other than to nearest. Under `exact` they are exact sums and, on devices,
// checked residues. Under other accuracies the vendor library's product has the thread's mode, if it rounds
// element by element as the thread does.
Chain directed_candidates(const Plan& plan) {
  const PlanRequest& request = plan.request;
  const bool is_native = request.scheme == native_scheme;
  const bool names_sums = request.scheme == schemes::superaccumulator.name;
  const bool is_exact = plan.contract.accuracy.kind == Accuracy::Kind::exact || names_sums;
  if (is_exact && plan.problem.type != OperandType::dd && request.policy != Policy::native && !is_native) {
    if (!request.scheme.empty() && !names_sums) fail_directed(plan);
    if (plan.engine->is_device() && request.scheme.empty()) return {checked_emulations(plan), {}};
    if (const auto sums = offered(plan, schemes::superaccumulator)) return {{*sums}, {}};
  }
  const bool may_be_native = (request.scheme.empty() || is_native) && request.policy != Policy::emulate &&
                             native_meets(plan.contract, plan.problem) && !request.rounding &&
                             !plan.engine->native_order_is_fixed() && plan.problem.type != OperandType::dd &&
                             !(plan.engine->is_device() && plan.problem.memory == MemorySpace::host);
  if (request.policy == Policy::native && !native_meets(plan.contract, plan.problem)) fail_unreachable(plan);
  if (!may_be_native) fail_directed(plan);
  return {{Candidate{.acceptance = accepts_all}}, {}};
}

Chain eligible_candidates(const Plan& plan) {
  if (plan.rounding != RoundingMode::nearest) return directed_candidates(plan);
  if (plan.request.is_reproducible()) return {reproducible_candidates(plan), {}};
  if (!plan.request.scheme.empty()) return {{named_candidate(plan)}, {}};
  if (std::vector<Candidate> checked = checked_by_policy(plan); !checked.empty())
    return {std::move(checked), {}};
  const bool native_follows = native_meets(plan.contract, plan.problem);
  Chain chain;
  if (!plan.engine->is_device()) {
    chain = emulations_on_host(plan, native_follows);
  } else if (native_follows) {
    chain = emulations_on_device(plan);
  }
  const bool accepts_all_elements =
      plan.engine->is_device() && chain.candidates.size() == 1 && is_direct(chain.candidates.front().program);
  if (native_follows && !accepts_all_elements)
    chain.candidates.push_back(native_after(plan, chain.candidates));
  if (chain.candidates.empty()) fail_unreachable(plan);
  return chain;
}

}  // namespace

void choose_candidates(Plan& plan) {
  Chain chain = eligible_candidates(plan);
  plan.candidates = std::move(chain.candidates);
  plan.candidate_when_prepared = std::move(chain.candidate_when_prepared);
}

}  // namespace kintsugi::core
