// The choice of program and engine: contract + shape + capabilities -> plan.
#include <omp.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "engines/registry.hpp"
#include "plan/bound.hpp"
#include "plan/plan.hpp"

namespace kintsugi::core {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::int64_t largest_size(const Problem& problem) {
  return std::max({problem.m, problem.n, problem.k, problem.lda, problem.ldb, problem.ldc});
}

const Engine& choose_engine(const Problem& problem, const std::string& name) {
  const std::int64_t size = largest_size(problem);
  if (name == "auto") {
    for (const Engine* engine : all_engines()) {
      if (engine->unavailable_reason().empty() && size <= engine->largest_size()) return *engine;
    }
    fail(Status::engine_unavailable, "no engine is available; there are {}", engine_names());
  }
  const Engine* engine = find_engine(name);
  if (engine == nullptr) {
    fail(Status::bad_setting, "there is no engine \"{}\"; the engines are auto, {}", name, engine_names());
  }
  if (const std::string reason = engine->unavailable_reason(); !reason.empty()) {
    fail(Status::engine_unavailable, "engine {} cannot run here: {}", name, reason);
  }
  if (size > engine->largest_size()) {
    fail(Status::not_supported, "engine {} takes sizes up to {} and one of these is {}", name,
         engine->largest_size(), size);
  }
  return *engine;
}

Accumulator choose_accumulator(const Engine& engine, const Format& format, const std::string& name) {
  const auto ways = engine.accumulators(format.id);
  if (ways.empty()) {
    fail(Status::not_supported, "engine {} does not multiply {}", engine.name(), format.name);
  }
  if (name.empty()) return ways.front();
  const auto accumulator = find_accumulator(name);
  if (!accumulator) {
    fail(Status::bad_setting, "there is no accumulator \"{}\"; the accumulators are {}", name,
         accumulator_names());
  }
  if (std::find(ways.begin(), ways.end(), *accumulator) == ways.end()) {
    std::string offered;
    for (const Accumulator way : ways)
      offered += (offered.empty() ? "" : ", ") + std::string(accumulator_name(way));
    fail(Status::not_supported, "engine {} does not add {} products as \"{}\"; it offers {}", engine.name(),
         format.name, name, offered);
  }
  return *accumulator;
}

const char* type_name(OperandType type) { return type == OperandType::f32 ? "fp32" : "fp64"; }

// Coefficient of (|A||B|)_ij that the accuracy allows; 0: nothing but the correctly rounded result.
double contract_coefficient(const std::string& accuracy, std::int64_t k) {
  if (accuracy == "fp32") return fp32_contract(k);
  if (accuracy == "fp64") return static_cast<double>(k + 8) * 0x1p-53;
  if (accuracy == "exact") return 0;
  double tolerance = 0;
  std::from_chars(accuracy.data(), accuracy.data() + accuracy.size(), tolerance);
  return tolerance;
}

// k fused additions and the rounding by alpha, in the type's own precision, in any order.
double native_coefficient(OperandType type, std::int64_t k) {
  const double unit = type == OperandType::f32 ? 0x1p-24 : 0x1p-53;
  const double first_order = static_cast<double>(k + 1) * unit;
  return first_order * (1 + first_order);
}

// The widest span at which the scheme is proved to meet the contract; -1: not even at 0.
int proved_span(const Scheme& scheme, Accumulator accumulator, std::int64_t k, double coefficient) {
  const Program& program = scheme.program;
  if (!program.split_a.scale_vectors || !program.split_b.scale_vectors) return -1;
  const int window = std::min(window_span(program.split_a), window_span(program.split_b));
  for (int span = window; span >= 0; --span) {
    if (relative_bound(program, accumulator, k, span, span) <= coefficient) return span;
  }
  return -1;
}

// Time of the scheme's products in units of the engine's native FP32 product.
double relative_cost(const Engine& engine, const Scheme& scheme) {
  const double rate = engine.relative_rate(scheme.program.format().id);
  return rate > 0 ? static_cast<double>(scheme.program.schedule.terms.size()) / rate : infinity;
}

struct Choice {
  std::vector<Rung> emulations;  // proved, cheapest first
  bool native_proved = false;
};

Choice candidates(const Plan& plan, const std::string& accumulator) {
  Choice choice;
  for (const Scheme* scheme : all_schemes()) {
    const Format& format = scheme->program.format();
    if (scheme->operands != plan.problem.type || plan.engine->accumulators(format.id).empty()) continue;
    const Accumulator way = choose_accumulator(*plan.engine, format, accumulator);
    const int span = proved_span(*scheme, way, plan.problem.k, plan.contract.coefficient);
    if (span >= 0) choice.emulations.push_back({scheme, way, span});
  }
  std::stable_sort(choice.emulations.begin(), choice.emulations.end(), [&](const Rung& x, const Rung& y) {
    return relative_cost(*plan.engine, *x.scheme) < relative_cost(*plan.engine, *y.scheme);
  });
  constexpr std::size_t most_emulations = Plan::most_rungs - 1;  // native is the last rung
  if (choice.emulations.size() > most_emulations) choice.emulations.resize(most_emulations);
  choice.native_proved = native_coefficient(plan.problem.type, plan.problem.k) <= plan.contract.coefficient;
  return choice;
}

void use_named_scheme(Plan& plan, const Settings& settings) {
  const std::string& name = settings[SettingId::scheme].value;
  const Scheme* scheme = find_scheme(name);
  if (scheme == nullptr) {
    fail(Status::bad_setting, "there is no scheme \"{}\"; the schemes are {}", name, scheme_names());
  }
  if (settings[SettingId::policy].value == "native") {
    fail(Status::bad_setting, "scheme = \"{}\" and policy = \"native\" contradict each other", name);
  }
  if (scheme->operands != plan.problem.type) {
    fail(Status::not_supported, "scheme {} takes {} operands and these are {}", name,
         type_name(scheme->operands), type_name(plan.problem.type));
  }
  const Accumulator way =
      choose_accumulator(*plan.engine, scheme->program.format(), settings[SettingId::accumulator].value);
  plan.contract.coefficient = 0;
  plan.rungs = {{scheme, way, Rung::any_span}};
}

[[noreturn]] void fail_unreachable(const Plan& plan, const std::string& policy) {
  const Problem& problem = plan.problem;
  fail(Status::contract_unreachable,
       "accuracy \"{}\" allows {:.3g} of |A||B| at k = {}; under policy \"{}\" no program for {} operands on "
       "engine {} is "
       "proved to give that (the native product is proved for {:.3g})",
       plan.contract.accuracy, plan.contract.coefficient, problem.k, policy, type_name(problem.type),
       plan.engine->name(), native_coefficient(problem.type, problem.k));
}

void use_policy(Plan& plan, const Settings& settings) {
  const std::string& policy = settings[SettingId::policy].value;
  const Choice choice = candidates(plan, settings[SettingId::accumulator].value);
  for (const Rung& rung : choice.emulations) {
    const double cost = relative_cost(*plan.engine, *rung.scheme);
    const bool wins = !choice.native_proved || cost < 1;
    if (policy == "emulate" || (policy == "auto" && wins)) plan.rungs.push_back(rung);
  }
  plan.emulation_proved = !choice.emulations.empty();
  if (choice.native_proved) plan.rungs.push_back({nullptr, Accumulator::fp32, Rung::any_span});
  if (plan.rungs.empty()) fail_unreachable(plan, policy);
}

}  // namespace

const Rung* Plan::widest_emulation() const {
  const Rung* widest = nullptr;
  for (const Rung& rung : rungs) {
    if (rung.scheme != nullptr) widest = &rung;
  }
  return widest;
}

Plan make_plan(const Problem& problem, const Settings& settings, const Allocator& allocator) {
  Plan plan;
  plan.problem = problem;
  plan.allocator = allocator;
  plan.settings = settings;
  const auto threads = static_cast<int>(parse_integer(settings[SettingId::threads].value));
  plan.threads = threads == 0 ? omp_get_max_threads() : threads;
  plan.engine = &choose_engine(problem, settings[SettingId::engine].value);
  const std::string& accuracy = settings[SettingId::accuracy].value;
  plan.contract.accuracy = accuracy.empty() ? type_name(problem.type) : accuracy;
  plan.contract.coefficient = contract_coefficient(plan.contract.accuracy, problem.k);
  if (settings[SettingId::scheme].value.empty()) {
    use_policy(plan, settings);
  } else {
    use_named_scheme(plan, settings);
  }
  const auto limit = static_cast<std::size_t>(parse_bytes(settings[SettingId::workspace_limit].value));
  plan.blocking = fit_blocking(plan, limit);
  plan.workspace_bytes = workspace_bytes(plan, plan.blocking);
  return plan;
}

}  // namespace kintsugi::core
