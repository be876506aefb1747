#include "planner/contract.hpp"

#include <charconv>

#include "base/status.hpp"
#include "base/text/nearest_name.hpp"
#include "planner/plan.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

// Reads the value of the setting `accuracy`, which the settings table has checked already.
std::optional<Accuracy> read_accuracy(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (text == "exact") return Accuracy{Accuracy::Kind::exact};
  if (text == "reproducible") return Accuracy{Accuracy::Kind::reproducible};
  for (const OperandType type : {OperandType::f32, OperandType::f64, OperandType::dd}) {
    if (text == type_name(type)) return accuracy_of_type(type);
  }
  double tolerance = 0;
  std::from_chars(text.data(), text.data() + text.size(), tolerance);
  return Accuracy{Accuracy::Kind::tolerance, {}, tolerance};
}

Policy read_policy(const std::string& text) {
  if (text == "emulate") return Policy::emulate;
  return text == "native" ? Policy::native : Policy::automatic;
}

Offload read_offload(const std::string& text) {
  if (text == "force") return Offload::force;
  return text == "auto" ? Offload::automatic : Offload::off;
}

std::optional<RoundingMode> read_rounding(const std::string& text) {
  for (const RoundingMode rounding :
       {RoundingMode::nearest, RoundingMode::down, RoundingMode::up, RoundingMode::toward_zero}) {
    if (text == rounding_name(rounding)) return rounding;
  }
  return std::nullopt;
}

std::optional<Accumulator> read_accumulator(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const auto accumulator = find_accumulator(name);
  if (!accumulator) {
    fail(Status::bad_setting, "there is no accumulator \"{}\"{}", name,
         accepted_names(name, "the accumulators are", accumulator_names()));
  }
  return accumulator;
}

// Resets that one of two contradicting settings which comes from the less specific source. Returns false and
// resets neither if both come from the same source. (The call is the most specific source, then handle,
// environment, file.)
bool drop_less_specific(Settings& settings, SettingId x, SettingId y) {
  if (is_from_nearer_source(settings[x], settings[y])) {
    settings.reset(y);
  } else if (is_from_nearer_source(settings[y], settings[x])) {
    settings.reset(x);
  } else {
    return false;
  }
  return true;
}

void resolve_scheme_against_policy(Settings& settings) {
  const std::string scheme = settings[SettingId::scheme].value;
  if (scheme.empty() || scheme == native_scheme ||
      read_policy(settings[SettingId::policy].value) != Policy::native)
    return;
  if (!drop_less_specific(settings, SettingId::scheme, SettingId::policy))
    fail(Status::bad_setting, "scheme = \"{}\" and policy = \"native\" contradict each other", scheme);
}

// Scheme and accuracy contradict each other if the scheme exists, takes these operands, and provably misses
// the accuracy for some of them.
void resolve_scheme_against_accuracy(Settings& settings, const Problem& problem) {
  const std::string name = settings[SettingId::scheme].value;
  const std::string text = settings[SettingId::accuracy].value;
  const auto accuracy = read_accuracy(text);
  // With the accuracy `reproducible` a scheme selects the products on the grid (candidates/reproducible.cpp),
  // which meet the accuracy.
  const Scheme* scheme =
      name.empty() || !accuracy || accuracy->is_reproducible() ? nullptr : find_scheme(name);
  if (scheme == nullptr || !scheme->operands.contains(problem.type) || problem.products() == 0) return;
  const double coefficient = contract_coefficient(*accuracy, problem.products());
  if (can_meet(fitted_program(*scheme, problem), problem.type, coefficient)) return;
  if (!drop_less_specific(settings, SettingId::scheme, SettingId::accuracy)) {
    fail(Status::contract_unreachable,
         "scheme = \"{}\" and accuracy = \"{}\" contradict each other: for some {} operands the scheme's "
         "error exceeds {:.3g} |A||B|",
         name, text, element_type_name(problem.type, problem.complex), coefficient);
  }
}

}  // namespace

Settings without_contradictions(Settings settings, const Problem& problem) {
  resolve_scheme_against_policy(settings);
  resolve_scheme_against_accuracy(settings, problem);
  return settings;
}

PlanRequest read_request(const Settings& settings) {
  const std::string& engine = settings[SettingId::engine].value;
  PlanRequest request;
  request.accuracy = read_accuracy(settings[SettingId::accuracy].value);
  request.scheme = settings[SettingId::scheme].value;
  if (engine != "auto") request.engine = engine;
  request.policy = read_policy(settings[SettingId::policy].value);
  request.rounding = read_rounding(settings[SettingId::rounding].value);
  request.offload = read_offload(settings[SettingId::offload].value);
  const std::string& kept = settings[SettingId::offload_keep].value;
  request.keeps_a = kept == "a" || kept == "ab";
  request.keeps_b = kept == "b" || kept == "ab";
  request.accumulator = read_accumulator(settings[SettingId::accumulator].value);
  request.workspace_limit = static_cast<std::size_t>(parse_bytes(settings[SettingId::workspace_limit].value));
  request.offload_memory = static_cast<std::size_t>(parse_bytes(settings[SettingId::offload_memory].value));
  request.threads = static_cast<int>(parse_integer(settings[SettingId::threads].value));
  return request;
}

namespace {

// Returns Contract::checked_coefficient. A tolerance below twice the error of the last rounding requires the
// correctly rounded result.
double checked_coefficient(const Contract& contract, OperandType type) {
  // Elements for which the grid of `reproducible` is not proved are correctly rounded.
  if (contract.accuracy.is_reproducible()) return 0;
  if (contract.accuracy.is_of_type()) return contract_coefficient(contract.accuracy, 1);
  return contract.coefficient >= 2 * unit_roundoff(type) ? contract.coefficient : 0;
}

}  // namespace

double contract_coefficient(const Accuracy& accuracy, std::int64_t k) {
  switch (accuracy.kind) {
    case Accuracy::Kind::by_type:
    case Accuracy::Kind::reproducible: return contract_of_type(accuracy.type, k);
    case Accuracy::Kind::exact: return 0;
    case Accuracy::Kind::tolerance: return accuracy.tolerance;
  }
  return 0;
}

Contract contract_of(const PlanRequest& request, const Problem& problem) {
  Contract contract;
  contract.accuracy = request.accuracy.value_or(accuracy_of_type(problem.type));
  if (contract.accuracy.is_reproducible()) contract.accuracy.type = problem.type;
  contract.coefficient = contract_coefficient(contract.accuracy, problem.products());
  contract.checked_coefficient = checked_coefficient(contract, problem.type);
  if (!request.scheme.empty() && !request.accuracy) contract.coefficient = 0;
  return contract;
}

RoundingMode rounding_of(const PlanRequest& request, const Problem& problem) {
  if (!request.is_reproducible()) return request.rounding.value_or(problem.rounding);
  if (request.rounding && *request.rounding != RoundingMode::nearest)
    fail(Status::not_supported, "reproducible products round to nearest, and rounding = \"{}\"",
         rounding_name(*request.rounding));
  return RoundingMode::nearest;
}

bool native_meets(const Contract& contract, const Problem& problem) {
  return native_coefficient(problem.type, problem.products()) <= contract.coefficient;
}

}  // namespace kintsugi::core
