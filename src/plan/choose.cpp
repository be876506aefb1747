// The choice of program and engine: contract + shape + capabilities -> plan.
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/fork.hpp"
#include "base/nearest_name.hpp"
#include "engines/device.hpp"
#include "engines/registry.hpp"
#include "plan/bound.hpp"
#include "plan/candidates.hpp"
#include "plan/device_matrix.hpp"
#include "plan/plan.hpp"

namespace kintsugi::core {

namespace {

// A leading dimension that is never stepped over counts for nothing.
std::int64_t largest_size(const Problem& problem) {
  const auto used = [&](std::int64_t ld, std::int64_t rows, std::int64_t columns, Op op) {
    const bool unit_down = (problem.layout == Layout::column_major) == (op == Op::none);
    return (unit_down ? columns : rows) > 1 ? ld : 0;
  };
  return std::max({problem.m, problem.vectors_b(), problem.products(),
                   used(problem.lda, problem.m, problem.k, problem.op_a),
                   used(problem.ldb, problem.k, problem.n, problem.op_b),
                   used(problem.ldc, problem.m, problem.n, Op::none)});
}

// Devices multiply double-double matrices neither as residues nor natively.
bool multiplies(const Engine& engine, OperandType type) {
  return type != OperandType::dd || engine.device() == nullptr;
}

void check_runs(const Engine& engine) {
  if (const std::string reason = engine.unavailable_reason(); !reason.empty())
    fail(Status::engine_unavailable, "engine {} cannot run here: {}", engine.name(), reason);
}

void check_settings_of(const Engine& engine) {
  if (const std::string refused = engine.refused_setting(); !refused.empty())
    fail(Status::bad_setting, "engine {}: {}", engine.name(), refused);
}

// The first that works where the matrices are; host matrices are staged only for an engine that was named. One that comes
// before it and cannot run here is a warning.
const Engine& choose_available_engine(const Problem& problem, std::int64_t size,
                                      std::vector<std::string>& warnings) {
  std::string reasons;
  for (const Engine* engine : all_engines()) {
    if ((engine->device() != nullptr) != (problem.memory == MemorySpace::device)) continue;
    if (!multiplies(*engine, problem.type)) {
      reasons +=
          fmt::format("; {}: it does not multiply {} operands", engine->name(), type_name(problem.type));
      continue;
    }
    check_settings_of(*engine);
    const std::string reason = engine->unavailable_reason();
    if (reason.empty() && size <= engine->largest_size()) return *engine;
    if (!reason.empty())
      warnings.push_back(fmt::format("engine {} cannot run here: {}", engine->name(), reason));
    reasons += fmt::format("; {}: {}", engine->name(), reason.empty() ? "a size is too large" : reason);
  }
  fail(Status::engine_unavailable, "no engine can multiply matrices in the {} memory{}",
       problem.memory == MemorySpace::device ? "device's" : "host's", reasons);
}

const Engine& choose_engine(const Problem& problem, const std::string& name,
                            std::vector<std::string>& warnings) {
  const std::int64_t size = largest_size(problem);
  if (name == "auto") return choose_available_engine(problem, size, warnings);
  const Engine* engine = find_engine(name);
  if (engine == nullptr) {
    fail(Status::bad_setting, "there is no engine \"{}\"{}", name,
         accepted_names(name, "the engines are", "auto, " + engine_names()));
  }
  check_settings_of(*engine);
  check_runs(*engine);
  if (!multiplies(*engine, problem.type)) {
    fail(Status::not_supported, "engine {} does not multiply {} operands; reference and cpu do", name,
         type_name(problem.type));
  }
  if (problem.memory == MemorySpace::device && engine->device() == nullptr) {
    fail(Status::not_supported, "engine {} works on the host's memory, and A, B and C are in a device's",
         name);
  }
  if (size > engine->largest_size()) {
    fail(Status::not_supported, "engine {} takes sizes up to {} and one of these is {}", name,
         engine->largest_size(), size);
  }
  return *engine;
}

// For a scheme that was named: what it cannot have is an error.
Accumulator choose_accumulator(const Plan& plan, const Program& program, const std::string& name) {
  const Engine& engine = *plan.engine;
  const Format& format = program.format();
  const auto ways = accumulators_of(engine, program, entry_type(plan.problem));
  if (ways.empty()) {
    fail(Status::not_supported, "engine {} does not multiply {}", engine.name(), format.name);
  }
  if (name.empty()) return ways.front();
  const auto found = std::find(ways.begin(), ways.end(), find_accumulator(name));
  if (found != ways.end()) return *found;
  std::string offered;
  for (const Accumulator way : ways)
    offered += (offered.empty() ? "" : ", ") + std::string(accumulator_name(way));
  fail(Status::not_supported, "engine {} does not add {} products as \"{}\"; it offers {}", engine.name(),
       format.name, name, offered);
}

// Coefficient of (|A||B|)_ij that the accuracy allows; 0: nothing but the correctly rounded result.
double contract_coefficient(const std::string& accuracy, std::int64_t k) {
  if (accuracy == "fp32") return contract_of_type(OperandType::f32, k);
  if (accuracy == "fp64") return contract_of_type(OperandType::f64, k);
  if (accuracy == "dd") return contract_of_type(OperandType::dd, k);
  if (accuracy == "exact") return 0;
  double tolerance = 0;
  std::from_chars(accuracy.data(), accuracy.data() + accuracy.size(), tolerance);
  return tolerance;
}

// What a checked entry shows (plan/plan.hpp). A coefficient that leaves hardly anything beside the last rounding asks
// for the correctly rounded result.
double checked_coefficient(const Contract& contract, OperandType type) {
  if (contract.is_of_type()) return contract_coefficient(contract.accuracy, 1);
  return contract.coefficient >= 2 * unit_roundoff(type) ? contract.coefficient : 0;
}

// Contracts that only checked programs meet: correct rounding, and FP64's and double-double's, whose integers are proved
// for narrow ranges alone; on a device all that its plain product, which takes what a window does not hold, does not
// meet. The last rounding must not break them.
bool asks_for_checks(const Plan& plan, bool native_proved) {
  const double coefficient = plan.contract.coefficient;
  if (coefficient == 0) return true;
  const bool windows_do = plan.engine->device() == nullptr || native_proved;
  return coefficient >= unit_roundoff(plan.problem.type) &&
         (plan.problem.type != OperandType::f32 || !windows_do);
}

// The native product where it was named, the way a scheme is: nobody looks at what underflows or overflows in it, unless an
// accuracy was asked for too.
constexpr std::string_view native_scheme = "native";

void use_named_scheme(Plan& plan, const Settings& settings) {
  const std::string& name = settings[SettingId::scheme].value;
  if (settings[SettingId::accuracy].value.empty()) plan.contract.coefficient = 0;
  if (name == native_scheme) {
    plan.candidates = {Candidate{nullptr, Accumulator::fp32, Candidate::any_span}};
    plan.candidates.back().fixed_order =
        plan.engine->device() == nullptr && plan.engine->native_order_is_fixed();
    return;
  }
  const Scheme* scheme = find_scheme(name);
  if (scheme == nullptr) {
    fail(Status::bad_setting, "there is no scheme \"{}\"{}", name,
         accepted_names(name.substr(0, name.find(':')), "the schemes are", scheme_names() + ", native"));
  }
  if (!scheme->operands.contains(plan.problem.type)) {
    fail(Status::not_supported, "scheme {} does not take {} operands", name, type_name(plan.problem.type));
  }
  Candidate candidate{scheme, Accumulator::fp32, Candidate::any_span, fitted_program(plan, *scheme)};
  if (plan.engine->device() != nullptr && candidate.program.split_a.scales != ScaleRule::exponent) {
    fail(Status::not_supported,
         "engine {} scales residues by exponents alone, and scheme {} asks for scale={}", plan.engine->name(),
         name, scale_rule_name(candidate.program.split_a.scales));
  }
  if (plan.engine->device() != nullptr && candidate.program.split_a.sigma_grid) {
    fail(Status::not_supported,
         "engine {} splits by the integer grid alone, and scheme {} asks for grid=sigma, which the engines "
         "reference and cpu have; grid=integer runs here",
         plan.engine->name(), name);
  }
  if (candidate.program.recombination != Recombination::exact_sums) {
    candidate.accumulator =
        choose_accumulator(plan, candidate.program, settings[SettingId::accumulator].value);
    candidate.program.schedule = schedule_of(plan.problem, candidate);
    if (sums_wrap(candidate, plan.problem.products())) {
      fail(Status::not_supported, "scheme {}: sums of {} products may wrap in {}", name,
           plan.problem.products(), accumulator_name(candidate.accumulator));
    }
  }
  if (plan.problem.memory == MemorySpace::device)
    candidate.largest_exponent = largest_exponent(candidate, plan.problem.products());
  plan.candidates = {candidate};
}

[[noreturn]] void fail_unreachable(const Plan& plan, const std::string& policy) {
  const Problem& problem = plan.problem;
  fail(Status::contract_unreachable,
       "accuracy \"{}\" allows {:.3g} of |A||B| at k = {}; under policy \"{}\" no program for {} operands on "
       "engine {} is "
       "proved to give that (the native product is proved for {:.3g})",
       plan.contract.accuracy, plan.contract.coefficient, problem.k, policy,
       entry_type_name(problem.type, problem.complex), plan.engine->name(),
       native_coefficient(problem.type, problem.products()));
}

bool cost_alike(const Plan& plan, const Candidate& x, const Candidate& y) {
  return relative_cost(*plan.engine, x.program) == relative_cost(*plan.engine, y.program);
}

// Of emulations that cost the same the widest, and before it one that is quicker for most operands; of those alone that a
// device computes in one step where there are any: its kernels leave at once where the entry is on another candidate. A stream
// cannot skip other products, so that of these there is one candidate, the first, in blocks that the engine likes; it runs
// always. Complex operands are split as entries into residues, and for other formats element by element, which takes longer
// than all products.
std::vector<Candidate> device_emulations(const Plan& plan, const std::string& accumulator) {
  if (const auto by_entries = proved_entries(plan, accumulator)) {
    std::vector<Candidate> chain = norm_emulations(plan, accumulator);
    chain.push_back(*by_entries);
    return chain;
  }
  std::vector<Candidate> fused;
  std::vector<Candidate> others;
  for (const Candidate& candidate : proved_emulations(plan, accumulator, true, true)) {
    std::vector<Candidate>& chain = is_fused(plan, candidate) ? fused : others;
    if (!chain.empty() && cost_alike(plan, candidate, chain.back())) chain.pop_back();
    chain.push_back(candidate);
  }
  if (fused.empty()) {
    if (others.empty()) return {};
    Candidate only = in_larger_blocks(plan, others.front());
    only.largest_depth = 0;  // its splits do not look for depths
    return {only};
  }
  if (plan.problem.prepared_a || plan.problem.prepared_b) return fused;
  auto quickest = quickest_at_depth(plan, accumulator);
  if (quickest && quickest->scheme != fused.front().scheme && cost_alike(plan, *quickest, fused.front())) {
    quickest->quick = true;
    fused.insert(fused.begin(), *quickest);
    if (fused.size() == DeviceReport::most_candidates) fused.pop_back();
  }
  return fused;
}

// The first that is no quick one: it takes wide spans.
const Candidate& wide_candidate(const std::vector<Candidate>& chain) {
  return chain[chain.front().quick ? 1 : 0];
}

// Few real vectors beside a prepared operand, which a candidate that it was not prepared for would split again: by thousands of
// blocks of threads, which take up to a tenth of the time of the product to leave. A batch, whose entries one such step serves
// together, was not measured.
bool is_short_beside_prepared(const Problem& problem) {
  constexpr std::int64_t few = 128;
  if (problem.complex || problem.batch_count > 1) return false;
  return (problem.prepared_b && problem.m <= few) || (problem.prepared_a && problem.n <= few);
}

// A candidate that is left out costs what launches do: a short product, in microseconds, has one alone, which takes wide spans,
// and one of moderate length but one more, which takes the widest.
void leave_out_for_time(std::vector<Candidate>& chain, double microseconds, const Problem& problem) {
  if (microseconds < 100 || is_short_beside_prepared(problem)) {
    chain = {wide_candidate(chain)};
  } else if (microseconds < 300 && chain.size() > 2) {
    chain = {chain.front(), chain.back()};
  }
}

// The split that finds ranges on the way finds mean depths for the first candidate's fp16 slices alone; the
// kernel that finds ranges before finds them always. Selection may not depend on which of them runs, which
// scalars in device memory and workspace limits decide.
void leave_out_depths(std::vector<Candidate>& chain) {
  const Candidate& first = chain.front();
  if (first.largest_depth > 0 && first.program.format().id == FormatId::fp16) return;
  for (Candidate& candidate : chain) candidate.largest_depth = 0;
}

void use_chain(Plan& plan, std::vector<Candidate> chain, const Candidate& wide) {
  leave_out_depths(chain);
  if (chain.front().quick) plan.prepared_by = wide;
  plan.candidates = std::move(chain);
}

// Takes the fallback chain where emulation is expected to be quicker than the native product by more than measurements differ.
// Where a device was never measured it is not.
void use_quicker_emulations(Plan& plan, std::vector<Candidate> chain) {
  const Problem& problem = plan.problem;
  if (chain.empty() || std::min({problem.m, problem.n, problem.k, problem.batch_count}) == 0) return;
  const Candidate wide = wide_candidate(chain);
  const Program& program = wide.program;
  if (!is_fused(plan, wide) && !program.multiplies_entries()) return;
  const auto times = plan.engine->device()->expected_times(
      {program.schedule, program.format().id, problem.complex, problem.m, problem.n, problem.k,
       problem.batch_count, problem.prepared_a, problem.prepared_b});
  if (!times) return;
  if (times->emulated >= 0.95 * times->native) {
    plan.prepared_by = wide;
    return;
  }
  leave_out_for_time(chain, times->emulated, problem);
  use_chain(plan, std::move(chain), wide);
}

// Behind the emulations comes the engine's own plain product, for operands that no window holds.
void use_device_policy(Plan& plan, const Settings& settings, bool native_proved) {
  const std::string& policy = settings[SettingId::policy].value;
  if (!native_proved) fail_unreachable(plan, policy);
  if (policy != "native" && plan.problem.type == OperandType::f32) {
    std::vector<Candidate> chain = device_emulations(plan, settings[SettingId::accumulator].value);
    if (policy == "auto") {
      use_quicker_emulations(plan, std::move(chain));
    } else if (!chain.empty()) {
      const Candidate wide = wide_candidate(chain);
      use_chain(plan, std::move(chain), wide);
    }
  }
  plan.candidates.push_back({nullptr, Accumulator::fp32, Candidate::any_span});
  plan.candidates.back().fixed_order =
      plan.candidates.size() > 1;  // behind emulations an own kernel, else the vendor library's
}

// Whether residues are quicker than the native double-double product: their products are, and splits and recombination
// are little beside them. At n = 1024 sixteen residues of FP64 made 8.7 GFLOP/s on a core of a Zen 4 (docs/results/log),
// so that thirty are expected to make about 4.6, and the native loop 4.3 there.
bool beats_native_pairs(const Plan& plan, const std::vector<Candidate>& chain) {
  constexpr std::int64_t least = 1024;
  const Problem& problem = plan.problem;
  if (problem.type != OperandType::dd || std::min({problem.m, problem.n, problem.k}) < least) return false;
  return relative_cost(*plan.engine, chain.front().program) < plan.engine->native_pair_time();
}

// The host's native product: under the policy emulate by a program with a fixed order, else the quickest. Double-double
// products and the reference engine's have one order.
Candidate native_candidate(const Plan& plan, bool emulate) {
  Candidate candidate{nullptr, Accumulator::fp32, Candidate::any_span};
  candidate.fixed_order =
      emulate || plan.problem.type == OperandType::dd || plan.engine->native_order_is_fixed();
  return candidate;
}

void use_policy(Plan& plan, const Settings& settings) {
  const std::string& policy = settings[SettingId::policy].value;
  const bool native_proved =
      native_coefficient(plan.problem.type, plan.problem.products()) <= plan.contract.coefficient;
  const bool may_emulate = policy == "emulate" || !native_proved || plan.problem.type == OperandType::dd;
  if (policy != "native" && may_emulate && asks_for_checks(plan, native_proved)) {
    const auto chain = checked_emulations(plan, settings[SettingId::accumulator].value);
    if (policy == "emulate" || !native_proved || beats_native_pairs(plan, chain)) {
      plan.candidates = chain;
      return;
    }
  }
  if (plan.engine->device() != nullptr) return use_device_policy(plan, settings, native_proved);
  if (policy != "native") {
    plan.candidates = proved_emulations(plan, settings[SettingId::accumulator].value,
                                        policy == "emulate" || !native_proved, native_proved);
  }
  if (native_proved) plan.candidates.push_back(native_candidate(plan, policy == "emulate"));
  if (plan.candidates.empty()) fail_unreachable(plan, policy);
}

// Two settings that exclude each other: the one from the nearer place counts. From one place they are an error; then
// false is returned.
bool settle(Settings& settings, SettingId x, SettingId y) {
  if (nearer(settings[x], settings[y])) {
    settings.reset(y);
  } else if (nearer(settings[y], settings[x])) {
    settings.reset(x);
  } else {
    return false;
  }
  return true;
}

void settle_scheme_and_policy(Settings& settings) {
  const std::string scheme = settings[SettingId::scheme].value;
  if (scheme.empty() || scheme == native_scheme || settings[SettingId::policy].value != "native") return;
  if (!settle(settings, SettingId::scheme, SettingId::policy))
    fail(Status::bad_setting, "scheme = \"{}\" and policy = \"native\" contradict each other", scheme);
}

// A scheme whose name is known, for operands that it takes, and an accuracy that it can be shown to miss.
void settle_scheme_and_accuracy(Settings& settings, const Problem& problem) {
  const std::string name = settings[SettingId::scheme].value;
  const std::string accuracy = settings[SettingId::accuracy].value;
  const Scheme* scheme = name.empty() || accuracy.empty() ? nullptr : find_scheme(name);
  if (scheme == nullptr || !scheme->operands.contains(problem.type) || problem.products() == 0) return;
  const double coefficient = contract_coefficient(accuracy, problem.products());
  if (can_meet(fitted_program(*scheme, problem), problem.type, coefficient)) return;
  if (!settle(settings, SettingId::scheme, SettingId::accuracy)) {
    fail(Status::contract_unreachable,
         "scheme = \"{}\" and accuracy = \"{}\" contradict each other: {} operands exist whose products the "
         "scheme "
         "cannot give within {:.3g} |A||B|",
         name, accuracy, entry_type_name(problem.type, problem.complex), coefficient);
  }
}

Settings settled(Settings settings, const Problem& problem) {
  settle_scheme_and_policy(settings);
  settle_scheme_and_accuracy(settings, problem);
  return settings;
}

void check_accumulator_name(const std::string& name) {
  if (name.empty() || find_accumulator(name)) return;
  fail(Status::bad_setting, "there is no accumulator \"{}\"{}", name,
       accepted_names(name, "the accumulators are", accumulator_names()));
}

}  // namespace

Program fitted_program(const Scheme& scheme, OperandType type, std::int64_t k) {
  Program program = scheme.program;
  if (scheme.fit != nullptr && k > 0) scheme.fit(program, type, k);
  return program;
}

Program fitted_program(const Scheme& scheme, const Problem& problem) {
  Program program = fitted_program(scheme, problem.type, problem.products());
  if (problem.complex && scheme.multiply_entries != nullptr && problem.k > 0)
    scheme.multiply_entries(program);
  return program;
}

const Candidate* Plan::checked_candidate() const {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [](const Candidate& candidate) { return candidate.checked; });
  return found == candidates.end() ? nullptr : &*found;
}

const Candidate* Plan::widest_emulation() const {
  const Candidate* widest = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.scheme != nullptr && (widest == nullptr || candidate.largest_span >= widest->largest_span))
      widest = &candidate;
  }
  return widest;
}

void check_engine_runs(const Plan& plan) {
  if (fork_depth() > 0) check_runs(*plan.engine);
}

Plan make_plan(const Problem& problem, const Settings& given, const Allocator& allocator,
               const Queue& queue) {
  const Settings settings = settled(given, problem);
  Plan plan;
  plan.problem = problem;
  plan.allocator = allocator;
  plan.queue = queue;
  plan.settings = settings;
  const auto threads = static_cast<int>(parse_integer(settings[SettingId::threads].value));
  plan.threads = usable_threads(threads == 0 ? omp_get_max_threads() : threads);
  check_accumulator_name(settings[SettingId::accumulator].value);
  plan.engine = &choose_engine(problem, settings[SettingId::engine].value, plan.warnings);
  if (plan.engine->device() != nullptr) {
    plan.engine->device()->prepare();
    plan.context = plan.engine->contexts()->current();
  }
  const std::string& accuracy = settings[SettingId::accuracy].value;
  plan.contract.accuracy = accuracy.empty() ? type_name(problem.type) : accuracy;
  plan.contract.coefficient = contract_coefficient(plan.contract.accuracy, problem.products());
  plan.contract.checked_coefficient = checked_coefficient(plan.contract, problem.type);
  if (settings[SettingId::scheme].value.empty()) {
    use_policy(plan, settings);
  } else {
    use_named_scheme(plan, settings);
  }
  const auto limit = static_cast<std::size_t>(parse_bytes(settings[SettingId::workspace_limit].value));
  plan.blocking = fit_blocking(plan, limit);
  // Staged matrices take none of the host's.
  const bool staged = plan.engine->device() != nullptr && problem.memory == MemorySpace::host;
  plan.workspace_bytes = staged ? 0 : workspace_bytes(plan, plan.blocking);
  return plan;
}

}  // namespace kintsugi::core
