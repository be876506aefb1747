#include "front/describe.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/text/format_text.hpp"
#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "front/json.hpp"
#include "planner/expected_times.hpp"
#include "planner/plan.hpp"
#include "planner/steps.hpp"
#include "schemes/bound.hpp"

namespace kintsugi::core {

namespace {

const char* rounding_words(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return "to nearest";
    case Rounding::towards_zero: return "towards zero";
    case Rounding::bit_cut: return "by cutting bits";
  }
  return "";
}

std::string split_words(const SplitRule& rule) {
  if (rule.kind == SplitKind::residues) {
    const int count = rule.complex_basis.empty() ? rule.slices : rule.complex_basis.count();
    if (rule.scales != ScaleRule::exponent)
      return fmt::format(
          "residues modulo {} numbers, rows and columns scaled by {} so that sums stay below 2^{}", count,
          rule.scales == ScaleRule::norm ? "norms" : "a product of magnitudes", rule.sum_bits);
    return fmt::format("residues modulo {} numbers, rows and columns scaled to integers below 2^{}", count,
                       rule.top_exponent + 1);
  }
  if (rule.kind == SplitKind::successive) {
    return fmt::format(
        "up to {} {} slices of integers of {} bits, each on a grid of its row's or column's own{}",
        rule.slices, rule.format->name, rule.residual_exponent,
        rule.sigma_grid ? ", rounded by fl((x + sigma) - sigma): positive elements to even integers" : "");
  }
  if (rule.kind == SplitKind::tiles) {
    return fmt::format("{} segments of 7 bits with one exponent per {} vectors x {} inner indices",
                       rule.slices, rule.tile_vectors, rule.tile_depth);
  }
  if (scales_by_maxima(rule))
    return fmt::format("{} {} slice{}, the largest residual of each row and column scaled to 127",
                       rule.slices, rule.format->name, rule.slices == 1 ? "" : "s");
  if (rule.kind == SplitKind::grid_digits) {
    return fmt::format("{} digits of {} bits of a grid, rows and columns scaled to maxima in [2^{}, 2^{})",
                       rule.slices, rule.residual_exponent, rule.top_exponent, rule.top_exponent + 1);
  }
  std::string words = fmt::format("{} {} slice{} rounded {}", rule.slices, rule.format->name,
                                  rule.slices == 1 ? "" : "s", rounding_words(rule.first_rounding));
  if (rule.slices > 1 && rule.residual_exponent != 0)
    words += fmt::format(", residual x 2^{}", rule.residual_exponent);
  if (rule.slices > 1 && rule.residual_exponent == 0) words += ", residual unscaled";
  words += rule.scale_vectors ? fmt::format(", rows and columns scaled to maxima in [2^{}, 2^{})",
                                            rule.top_exponent, rule.top_exponent + 1)
                              : ", no scaling";
  return words;
}

// Returns the words that explain the number of products, and follow it in the sentence.
std::string term_words(const Program& program) {
  if (program.multiplies_elements())
    return "two of complex elements a modulus where -1 is a square, three a modulus elsewhere";
  if (program.recombination == Recombination::residues) return "one a modulus";
  if (program.recombination == Recombination::ozaki1) return "at most, for each slice of B";
  const Schedule& schedule = program.schedule;
  std::string words;
  for (const Term& term : schedule.terms) {
    if (term.rescales) words = fmt::format("2^{} ({})", schedule.rescale_exponent, words);
    if (!words.empty()) words += " + ";
    words += fmt::format("a{} b{}", static_cast<int>(term.a), static_cast<int>(term.b));
  }
  return words;
}

const char* operand_words(const Problem& problem) {
  if (problem.complex) return problem.type == OperandType::f32 ? "complex FP32" : "complex FP64";
  if (problem.type == OperandType::dd) return "double-double";
  return problem.type == OperandType::f32 ? "FP32" : "FP64";
}

const char* prepared_words(const Problem& problem) {
  if (problem.prepared_a) return problem.prepared_b ? " (both prepared)" : " (A prepared)";
  return problem.prepared_b ? " (B prepared)" : "";
}

std::string native_words(const Plan& plan, const Candidate& candidate) {
  const char* type = operand_words(plan.problem);
  if (plan.engine->is_device() && plan.widest_emulation() != nullptr) {
    constexpr double many_times = 8;
    const auto times = expected_device_times(plan, plan.candidates.front());
    const std::string warning = times && times->native > many_times * times->emulated
                                    ? fmt::format(" It takes about {:.0f} times as long as the first one.",
                                                  times->native / times->emulated)
                                    : "";
    return fmt::format(
        "The native {} product of engine {}'s own kernel, for operands that no emulation accepts.{}", type,
        plan.engine->name(), warning);
  }
  return fmt::format("The native {} product of engine {}{}.", type, plan.engine->name(),
                     candidate.fixed_order
                         ? ", added in a fixed order by a program of this library"
                         : ", the vendor library's, whose bits may depend on layout and threads");
}

std::string acceptance_words(const Acceptance& acceptance) {
  std::string words;
  if (acceptance.by_norms())
    words += " Taken where the norms of A's rows and B's columns prove every element.";
  if (acceptance.any_range()) return words;
  words +=
      fmt::format(" Taken when {} at most {} binades",
                  acceptance.whole_operand ? "A and B each span" : "every row of A and column of B spans",
                  acceptance.dynamic_range);
  if (acceptance.mean_depth == 0) return words + ".";
  return words + fmt::format(
                     ", or the elements of a row and a column that are multiplied lie on average at most {} "
                     "binades, together, below the largest ones.",
                     acceptance.mean_depth);
}

std::string program_words(const Candidate& candidate) {
  const Schedule& schedule = candidate.program.schedule;
  const std::string accumulation =
      schedule.k_block == 0
          ? "the sums stay in the engine over all of k"
          : fmt::format("partial sums are added outside the engine every {} inner indices", schedule.k_block);
  return fmt::format("{}: {}; {} product{}, {}; {}; accumulator {}.", candidate.scheme_name(),
                     split_words(candidate.program.split_a), schedule.terms.size(),
                     schedule.terms.size() == 1 ? "" : "s", term_words(candidate.program), accumulation,
                     accumulator_name(candidate.accumulator));
}

std::string candidate_words(const Plan& plan, const Candidate& candidate) {
  if (candidate.scheme == nullptr) return native_words(plan, candidate);
  if (candidate.program.recombination == Recombination::exact_sums)
    return fmt::format("{}: every element summed exactly and rounded once, on the {}.",
                       candidate.scheme_name(), plan.engine->is_device() ? "device" : "host");
  std::string words = program_words(candidate);
  if (is_direct(candidate.program))
    words += " Sums that overflow or are tiny beside large elements are computed in FP32.";
  if (candidate.checked) {
    words += " Every element is checked when it is computed; the next candidates compute those that fail.";
  }
  return words + acceptance_words(candidate.acceptance);
}

// Returns the sentence on why the plan has this fallback chain.
std::string reason_words(const Plan& plan) {
  const std::string& scheme = plan.request.scheme;
  if (!scheme.empty()) {
    const std::string words = fmt::format("Scheme {} was named, so it runs whatever it costs", scheme);
    if (!plan.request.accuracy) return words + ".";
    return words +
           fmt::format("; accuracy {}, which was set too, allows an error of {:.3g} |A||B| at k = {}.",
                       plan.accuracy_text(), plan.contract.coefficient, plan.problem.k);
  }
  const Policy policy = plan.request.policy;
  const std::string allowed = fmt::format("Accuracy {} allows an error of {:.3g} |A||B| at k = {}",
                                          plan.accuracy_text(), plan.contract.coefficient, plan.problem.k);
  if (policy == Policy::native) return allowed + "; policy native never emulates.";
  if (plan.widest_emulation() != nullptr) {
    return allowed + "; of the plan's programs the first that is proved for the operands runs.";
  }
  if (policy == Policy::emulate) {
    return allowed + "; no emulation is proved to give that, so the native product runs in a fixed order.";
  }
  return allowed +
         fmt::format(
             "; on engine {} the native product is expected to be faster than any emulation, so policy auto "
             "selects it.",
             plan.engine->name());
}

// Returns the sentence on the state of the matrix unit, which follows the reason; empty if its rate does not
// vary.
std::string matrix_unit_words(MatrixUnitState state) {
  switch (state) {
    case MatrixUnitState::steady: break;
    case MatrixUnitState::fast: return " AMX was measured in its fast state.";
    case MatrixUnitState::slow:
      return " AMX was measured in its slow state: the core's other hardware thread works.";
    case MatrixUnitState::set_fast: return " AMX counts as fast by the setting cpu_amx.";
    case MatrixUnitState::set_slow: return " AMX counts as slow by the setting cpu_amx.";
    case MatrixUnitState::unknown:
      return " The state of AMX was not measured, because several threads take cores in both states.";
  }
  return {};
}

// Describes a plan in words: returns one line each for the problem, the reason of the fallback chain, every
// candidate, and the workspace.
std::vector<std::string> plan_words(const Plan& plan) {
  const Problem& problem = plan.problem;
  std::vector<std::string> words;
  words.push_back(fmt::format(
      "{} x {} result, inner length {}, batch of {}, {} operands{}, engine {} ({}), {} thread{}.", problem.m,
      problem.n, problem.k, problem.batch_count, operand_words(problem), prepared_words(problem),
      plan.engine->name(), plan.engine->details(), plan.threads, plan.threads == 1 ? "" : "s"));
  for (const std::string& warning : plan.warnings) words.push_back("Warning: " + warning + ".");
  words.push_back(reason_words(plan) + matrix_unit_words(plan.unit));
  if (!plan.offload_words.empty()) words.push_back(plan.offload_words);
  for (std::size_t index = 0; index < plan.candidates.size(); ++index) {
    const std::string number = plan.candidates.size() == 1 ? "" : fmt::format("{}. ", index + 1);
    words.push_back(number + candidate_words(plan, plan.candidates[index]));
  }
  if (problem.complex && plan.widest_emulation() != nullptr) {
    words.push_back(
        fmt::format("Real and imaginary parts are the {} columns of one real product of inner length {}; "
                    "bounds hold for each part.",
                    problem.vectors_b(), problem.products()));
  }
  if (plan.workspace_bytes > 0) {
    words.push_back(fmt::format("Workspace {} bytes; blocks of {} x {} elements of C.", plan.workspace_bytes,
                                plan.blocking.m, plan.blocking.n));
  }
  return words;
}

// Version 1 had other names for members of candidates, version 2 a member more of schedules. Both are still
// read: only problem and settings are read back, and these are the same.
constexpr int format_version = 3;

Json plan_candidate_json(const Plan& plan, const Candidate& candidate) {
  Json json = candidate_json(candidate);
  if (candidate.scheme == nullptr || plan.problem.k == 0) return json;
  add_bounds(json, candidate.program, candidate.accumulator, plan.problem.products());
  json["program"] = scheme_json(*candidate.scheme, candidate.scheme_name(), candidate.program);
  return json;
}

Json problem_json(const Problem& problem) {
  return {{"m", problem.m},
          {"n", problem.n},
          {"k", problem.k},
          {"lda", problem.lda},
          {"ldb", problem.ldb},
          {"ldc", problem.ldc},
          {"op_a", static_cast<int>(problem.op_a)},
          {"op_b", static_cast<int>(problem.op_b)},
          {"type", element_type_name(problem.type, problem.complex)},
          {"layout", problem.layout == Layout::row_major ? "row-major" : "column-major"},
          {"batch_kind", problem.batch_kind == BatchKind::pointers ? "pointers" : "strided"},
          {"batch_count", problem.batch_count},
          {"stride_a", problem.stride_a},
          {"stride_b", problem.stride_b},
          {"stride_c", problem.stride_c},
          {"memory", problem.memory == MemorySpace::device ? "device" : "host"},
          {"scalars", problem.device_scalars ? "device" : "host"},
          {"prepared_a", problem.prepared_a},
          {"prepared_b", problem.prepared_b},
          {"adds_to_c", problem.adds_to_c}};
}

std::int64_t read_integer(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (!value.is_number_integer()) {
    fail(Status::invalid_argument, "plan description: {} = {} is no integer", name, value.dump());
  }
  return value.get<std::int64_t>();
}

// Returns the index of the member's value in `words`, the values that descriptions have.
std::int32_t read_word(const Json& json, const char* name, std::initializer_list<const char*> words) {
  const std::string value = json.at(name).get<std::string>();
  const auto found = std::find(words.begin(), words.end(), value);
  if (found == words.end())
    fail(Status::invalid_argument, "plan description: {} = \"{}\" is unknown", name, value);
  return static_cast<std::int32_t>(found - words.begin());
}

Op read_op(const Json& json, const char* name) {
  const std::int64_t op = read_integer(json, name);
  if (op < 0 || op > 2)
    fail(Status::invalid_argument, "plan description: {} = {} is not in 0...2: N is 0, T 1, C 2", name, op);
  return static_cast<Op>(op);
}

Problem read_problem(const Json& json) {
  Problem problem;
  problem.m = read_integer(json, "m");
  problem.n = read_integer(json, "n");
  problem.k = read_integer(json, "k");
  problem.lda = read_integer(json, "lda");
  problem.ldb = read_integer(json, "ldb");
  problem.ldc = read_integer(json, "ldc");
  problem.op_a = read_op(json, "op_a");
  problem.op_b = read_op(json, "op_b");
  const std::int32_t type_index = read_word(json, "type", {"fp32", "fp64", "c32", "c64", "dd"});
  constexpr std::array types{OperandType::f32, OperandType::f64, OperandType::f32, OperandType::f64,
                             OperandType::dd};
  constexpr std::array are_complex{false, false, true, true, false};
  problem.type = types[type_index];
  problem.complex = are_complex[type_index];
  problem.layout = static_cast<Layout>(read_word(json, "layout", {"column-major", "row-major"}));
  problem.batch_kind = static_cast<BatchKind>(read_word(json, "batch_kind", {"strided", "pointers"}));
  problem.batch_count = read_integer(json, "batch_count");
  problem.stride_a = read_integer(json, "stride_a");
  problem.stride_b = read_integer(json, "stride_b");
  problem.stride_c = read_integer(json, "stride_c");
  problem.memory = static_cast<MemorySpace>(read_word(json, "memory", {"host", "device"}));
  problem.device_scalars = read_word(json, "scalars", {"host", "device"}) == 1;
  problem.prepared_a = json.value("prepared_a", false);  // older descriptions lack these members
  problem.prepared_b = json.value("prepared_b", false);
  problem.adds_to_c = json.value("adds_to_c", false);
  return problem;
}

Json settings_json(const Settings& settings) {
  Json json = Json::object();
  for (const auto& setting : setting_table) {
    const SettingValue& value = settings[setting.id];
    json[std::string(setting.name)] = {{"value", value.value}, {"source", value.source}};
  }
  return json;
}

}  // namespace

std::string describe_plan(const Plan& plan) {
  Json json = json_document("kintsugi.plan", format_version);
  json["problem"] = problem_json(plan.problem);
  json["contract"] = {{"accuracy", plan.accuracy_text()}, {"coefficient", plan.contract.coefficient}};
  json["engine"] = plan.engine->name();
  json["candidates"] = Json::array();
  for (const Candidate& candidate : plan.candidates)
    json["candidates"].push_back(plan_candidate_json(plan, candidate));
  json["blocking"] = {{"m", plan.blocking.m}, {"n", plan.blocking.n}};
  json["workspace_bytes"] = plan.workspace_bytes;
  json["threads"] = plan.threads;
  json["matrix_unit"] = matrix_unit_json(plan.unit);
  json["offloaded"] = plan.is_offloaded();
  json["steps"] = step_lines(plan);
  json["settings"] = settings_json(plan.settings);
  json["warnings"] = plan.warnings;
  json["words"] = plan_words(plan);
  return text_of(json);
}

PlanWords words_of(const Plan& plan) {
  PlanWords words{.candidates = {}, .reason = reason_words(plan) + matrix_unit_words(plan.unit)};
  for (const Candidate& candidate : plan.candidates)
    words.candidates += (words.candidates.empty() ? "" : ", ") + candidate.name();
  return words;
}

PlanDescription read_plan_description(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const Json& version = json.at("format_version");
    if (json.at("format") != "kintsugi.plan" || !version.is_number_integer() || version < 1 ||
        version > format_version) {
      fail(Status::invalid_argument, "this is format {} version {}; kintsugi.plan versions 1 to {} are read",
           json.at("format").dump(), version.dump(), format_version);
    }
    PlanDescription description{read_problem(json.at("problem")), {}};
    for (const auto& setting : setting_table) {
      const std::string name(setting.name);
      if (!json.at("settings").contains(name)) continue;  // a description older than the setting
      const std::string value = json.at("settings").at(name).at("value");
      if (value == setting.default_value) {
        description.settings.set_default(setting);
      } else {
        description.settings.set(setting, value, "plan description");
      }
    }
    return description;
  } catch (const Json::exception& error) {
    fail(Status::invalid_argument, "this is not a plan description: {}", error.what());
  }
}

std::string describe_schemes() {
  Json json = json_document("kintsugi.schemes", 2);
  json["schemes"] = Json::array();
  for (const Scheme* scheme : all_schemes())
    json["schemes"].push_back(scheme_json(*scheme, std::string(scheme->name), scheme->program));
  return text_of(json);
}

namespace {

Json accumulators_json(const Engine& engine) {
  Json json = Json::object();
  for (const Format* format : formats) {
    const auto accumulators = engine.accumulators(format->id);
    if (accumulators.empty()) continue;
    Json names = Json::array();
    for (const Accumulator accumulator : accumulators) names.push_back(accumulator_name(accumulator));
    json[format->name] = names;
  }
  return json;
}

Json requirements_json(const Engine& engine) {
  Json json = Json::array();
  for (const Requirement& requirement : engine.requirements()) {
    json.push_back({{"name", requirement.name},
                    {"met", requirement.reason.empty()},
                    {"details", requirement.details},
                    {"reason", requirement.reason}});
  }
  return json;
}

}  // namespace

std::string describe_engines() {
  Json json = json_document("kintsugi.engines");
  json["engines"] = Json::array();
  for (const Engine* engine : all_engines()) {
    const std::string reason = engine->unavailable_reason();
    json["engines"].push_back({{"name", engine->name()},
                               {"summary", engine->summary()},
                               {"available", reason.empty()},
                               {"reason", reason},
                               {"details", reason.empty() ? engine->details() : ""},
                               {"requirements", requirements_json(*engine)},
                               {"accumulators", accumulators_json(*engine)}});
  }
  return text_of(json);
}

std::string describe_settings(const Settings& settings) {
  Json json = json_document("kintsugi.settings");
  json["settings"] = Json::array();
  for (const auto& setting : setting_table) {
    const SettingValue& value = settings[setting.id];
    json["settings"].push_back({{"name", setting.name},
                                {"environment", environment_variable(setting)},
                                {"environment_only", environment_only(setting.id)},
                                {"type", setting_kind_name(setting.kind)},
                                {"accepted", setting.accepted},
                                {"default", setting.default_value},
                                {"doc", setting.documentation},
                                {"value", value.value},
                                {"source", value.source}});
  }
  json["ignored_variables"] = Json::array();
  for (const UnknownVariable& variable : unknown_variables())
    json["ignored_variables"].push_back(
        {{"name", variable.name}, {"nearest", variable.nearest ? Json(*variable.nearest) : Json()}});
  return text_of(json);
}

}  // namespace kintsugi::core
