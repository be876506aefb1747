// The choice of program and engine: contract + shape + capabilities -> plan.
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "engines/device.hpp"
#include "engines/registry.hpp"
#include "plan/bound.hpp"
#include "plan/candidates.hpp"
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

// The first that works where the matrices are; host matrices are staged only for an engine that was named.
const Engine& choose_available_engine(const Problem& problem, std::int64_t size) {
  std::string reasons;
  for (const Engine* engine : all_engines()) {
    if ((engine->device() != nullptr) != (problem.memory == MemorySpace::device)) continue;
    const std::string reason = engine->unavailable_reason();
    if (reason.empty() && size <= engine->largest_size()) return *engine;
    reasons += fmt::format("; {}: {}", engine->name(), reason.empty() ? "a size is too large" : reason);
  }
  fail(Status::engine_unavailable, "no engine can multiply matrices in the {} memory{}",
       problem.memory == MemorySpace::device ? "device's" : "host's", reasons);
}

const Engine& choose_engine(const Problem& problem, const std::string& name) {
  const std::int64_t size = largest_size(problem);
  if (name == "auto") return choose_available_engine(problem, size);
  const Engine* engine = find_engine(name);
  if (engine == nullptr) {
    fail(Status::bad_setting, "there is no engine \"{}\"; the engines are auto, {}", name, engine_names());
  }
  if (const std::string reason = engine->unavailable_reason(); !reason.empty()) {
    fail(Status::engine_unavailable, "engine {} cannot run here: {}", name, reason);
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
Accumulator choose_accumulator(const Engine& engine, const Format& format, const std::string& name) {
  const auto ways = engine.accumulators(format.id);
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

const char* type_name(OperandType type) { return type == OperandType::f32 ? "fp32" : "fp64"; }

// Coefficient of (|A||B|)_ij that the accuracy allows; 0: nothing but the correctly rounded result.
double contract_coefficient(const std::string& accuracy, std::int64_t k) {
  if (accuracy == "fp32") return contract_of_type(OperandType::f32, k);
  if (accuracy == "fp64") return contract_of_type(OperandType::f64, k);
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

// Inner products rounded to nearest lose at most k u |a||b|, in any order, fused or not, without a
// second-order term (Jeannerod and Rump, Improved error bounds for inner products in floating-point
// arithmetic, 2013). A part of a complex entry is such a product of length 2 k.
double native_coefficient(OperandType type, std::int64_t k) {
  return static_cast<double>(k) * unit_roundoff(type);
}

// Contracts that only checked programs meet: correct rounding, and FP64's, whose integers are proved for narrow
// ranges alone. The last rounding must not break them.
bool asks_for_checks(const Plan& plan) {
  const double coefficient = plan.contract.coefficient;
  return coefficient == 0 ||
         (plan.problem.type == OperandType::f64 && coefficient >= unit_roundoff(OperandType::f64));
}

void use_named_scheme(Plan& plan, const Settings& settings) {
  const std::string& name = settings[SettingId::scheme].value;
  const Scheme* scheme = find_scheme(name);
  if (scheme == nullptr) {
    fail(Status::bad_setting, "there is no scheme \"{}\"; the schemes are {}", name, scheme_names());
  }
  if (!scheme->operands.contains(plan.problem.type)) {
    fail(Status::not_supported, "scheme {} does not take {} operands", name, type_name(plan.problem.type));
  }
  Rung rung{scheme, Accumulator::fp32, Rung::any_span, fitted_program(plan, *scheme)};
  if (plan.engine->device() != nullptr && !runs_on_device(rung.program)) {
    fail(Status::not_supported, "engine {} has no kernels for what scheme {} asks of the {}",
         plan.engine->name(), name,
         rung.program.recombination == Recombination::exact_sums ? "sums" : "splits");
  }
  if (rung.program.recombination != Recombination::exact_sums) {
    rung.accumulator =
        choose_accumulator(*plan.engine, rung.program.format(), settings[SettingId::accumulator].value);
    if (sums_wrap(rung, plan.problem.products())) {
      fail(Status::not_supported, "scheme {}: sums of {} products may wrap in {}", name,
           plan.problem.products(), accumulator_name(rung.accumulator));
    }
  }
  if (plan.problem.memory == MemorySpace::device)
    rung.largest_exponent = largest_exponent(rung, plan.problem.products());
  plan.contract.coefficient = 0;
  plan.rungs = {rung};
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

// A stream cannot skip the vendor's products, so that a ladder has one emulation, the widest of the cheapest ones, in
// blocks that the engine likes; it runs always, and where the device then finds that its window does not hold the
// operands, the engine's own plain product takes their place.
void use_device_policy(Plan& plan, const Settings& settings, bool native_proved) {
  const std::string& policy = settings[SettingId::policy].value;
  if (!native_proved) fail_unreachable(plan, policy);
  if (policy == "emulate" && plan.problem.type == OperandType::f32) {
    const std::string& accumulator = settings[SettingId::accumulator].value;
    for (const Rung& rung : proved_emulations(plan, accumulator, true, true)) {
      const bool as_cheap = plan.rungs.empty() || relative_cost(*plan.engine, rung.program) <=
                                                      relative_cost(*plan.engine, plan.rungs.front().program);
      if (as_cheap) plan.rungs = {in_larger_blocks(plan, rung)};
    }
  }
  plan.rungs.push_back({nullptr, Accumulator::fp32, Rung::any_span});
}

void use_policy(Plan& plan, const Settings& settings) {
  const std::string& policy = settings[SettingId::policy].value;
  const bool native_proved =
      native_coefficient(plan.problem.type, plan.problem.products()) <= plan.contract.coefficient;
  if (plan.engine->device() != nullptr) return use_device_policy(plan, settings, native_proved);
  if (policy != "native" && asks_for_checks(plan) && (policy == "emulate" || !native_proved)) {
    plan.rungs = checked_emulations(plan, settings[SettingId::accumulator].value);
    return;
  }
  if (policy != "native") {
    plan.rungs = proved_emulations(plan, settings[SettingId::accumulator].value,
                                   policy == "emulate" || !native_proved, native_proved);
  }
  if (native_proved) plan.rungs.push_back({nullptr, Accumulator::fp32, Rung::any_span});
  if (plan.rungs.empty()) fail_unreachable(plan, policy);
}

// A scheme and policy native exclude each other: the one from the nearer place counts.
Settings settle_scheme_and_policy(Settings settings) {
  const SettingValue& scheme = settings[SettingId::scheme];
  const SettingValue& policy = settings[SettingId::policy];
  if (scheme.value.empty() || policy.value != "native") return settings;
  if (nearer(policy, scheme)) {
    settings.reset(SettingId::scheme);
  } else if (nearer(scheme, policy)) {
    settings.reset(SettingId::policy);
  } else {
    fail(Status::bad_setting, "scheme = \"{}\" and policy = \"native\" contradict each other", scheme.value);
  }
  return settings;
}

void check_accumulator_name(const std::string& name) {
  if (name.empty() || find_accumulator(name)) return;
  fail(Status::bad_setting, "there is no accumulator \"{}\"; the accumulators are {}", name,
       accumulator_names());
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

const Rung* Plan::widest_emulation() const {
  const Rung* widest = nullptr;
  for (const Rung& rung : rungs) {
    if (rung.scheme != nullptr && (widest == nullptr || rung.largest_span >= widest->largest_span))
      widest = &rung;
  }
  return widest;
}

Plan make_plan(const Problem& problem, const Settings& given, const Allocator& allocator,
               const Queue& queue) {
  const Settings settings = settle_scheme_and_policy(given);
  Plan plan;
  plan.problem = problem;
  plan.allocator = allocator;
  plan.queue = queue;
  plan.settings = settings;
  const auto threads = static_cast<int>(parse_integer(settings[SettingId::threads].value));
  plan.threads = threads == 0 ? omp_get_max_threads() : threads;
  check_accumulator_name(settings[SettingId::accumulator].value);
  plan.engine = &choose_engine(problem, settings[SettingId::engine].value);
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
  if (plan.engine->device() != nullptr) plan.engine->device()->prepare();
  return plan;
}

}  // namespace kintsugi::core
