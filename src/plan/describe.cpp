#include "plan/describe.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/version.hpp"
#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "plan/bound.hpp"
#include "plan/words.hpp"

namespace kintsugi::core {

namespace {

using Json = nlohmann::ordered_json;

constexpr int format_version = 1;

Json document(const char* format) {
  return {{"format", format}, {"format_version", format_version}, {"version", library_version}};
}

// Names of files need not be UTF-8.
std::string text_of(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace); }

const char* recombination_name(Recombination recombination) {
  switch (recombination) {
    case Recombination::weighted: return "weighted";
    case Recombination::residues: return "residues";
    case Recombination::exact_sums: return "exact_sums";
    case Recombination::error_free: return "error_free";
  }
  return "";
}

Json types_json(const OperandTypes& types) {
  Json names = Json::array();
  for (const OperandType type : {OperandType::f32, OperandType::f64, OperandType::dd}) {
    if (types.contains(type)) names.push_back(type_name(type));
  }
  return names;
}

const char* rounding_name(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return "nearest-even";
    case Rounding::towards_zero: return "towards-zero";
    case Rounding::bit_cut: return "bit-cut";
  }
  return "";
}

const char* kind_name(SplitKind kind) {
  switch (kind) {
    case SplitKind::hi_lo: return "hi_lo";
    case SplitKind::fixed: return "fixed";
    case SplitKind::magnitude: return "magnitude";
    case SplitKind::magnitude_above: return "magnitude_above";
    case SplitKind::residues: return "residues";
    case SplitKind::successive: return "successive";
  }
  return "";
}

Json basis_json(const ComplexBasis& basis) {
  if (basis.empty()) return {};
  return {{"with_root", basis.with_root}, {"without", basis.without}};
}

Json split_json(const SplitRule& rule) {
  return {{"kind", kind_name(rule.kind)},
          {"format", rule.format->name},
          {"slices", rule.slices},
          {"first_rounding", rounding_name(rule.first_rounding)},
          {"residual_rounding", rounding_name(rule.residual_rounding)},
          {"residual_exponent", rule.residual_exponent},
          {"scale_vectors", rule.scale_vectors},
          {"top_exponent", rule.scale_vectors ? Json(rule.top_exponent) : Json()},
          {"complex_basis", basis_json(rule.complex_basis)},
          {"scales", rule.kind == SplitKind::residues ? Json(scale_rule_name(rule.scales)) : Json()}};
}

Json schedule_json(const Schedule& schedule) {
  Json terms = Json::array();
  for (const Term& term : schedule.terms) {
    terms.push_back({{"a", term.a}, {"b", term.b}, {"group", term.group}, {"rescales", term.rescales}});
  }
  Json exponents = Json::array();
  for (int g = 0; g < schedule.groups; ++g) exponents.push_back(schedule.group_exponents[g]);
  return {{"terms", terms},
          {"groups", schedule.groups},
          {"k_block", schedule.k_block},
          {"k_step", schedule.k_step},
          {"k_segment", schedule.k_segment},
          {"most_halvings", schedule.most_halvings},
          {"joint", schedule.joint},
          {"rescale_exponent", schedule.rescale_exponent},
          {"group_exponents", exponents}};
}

Json scheme_json(const Scheme& scheme, const Program& program) {
  return {{"name", scheme.name},
          {"summary", scheme.summary},
          {"operands", types_json(scheme.operands)},
          {"split_a", split_json(program.split_a)},
          {"split_b", split_json(program.split_b)},
          {"schedule", schedule_json(program.schedule)},
          {"recombination", recombination_name(program.recombination)},
          {"products", program.schedule.terms.size()},
          {"parameters", scheme.parameters},
          {"bound", scheme.bound},
          {"window", scheme.window},
          {"source", scheme.source}};
}

Json candidate_json(const Candidate& candidate) {
  if (candidate.scheme == nullptr)
    return {{"scheme", "native"},
            {"accumulator", nullptr},
            {"largest_span", nullptr},
            {"largest_depth", nullptr},
            {"proved_by_norms", false},
            {"checked", false},
            {"fixed_order", candidate.fixed_order}};
  return {
      {"scheme", candidate.scheme->name},
      {"accumulator", accumulator_name(candidate.accumulator)},
      {"largest_span", candidate.largest_span == Candidate::any_span ? Json() : Json(candidate.largest_span)},
      {"largest_depth", candidate.largest_depth == 0 ? Json() : Json(candidate.largest_depth)},
      {"proved_by_norms", candidate.proved_by_norms},
      {"checked", candidate.checked},
      {"fixed_order", candidate.accumulator != Accumulator::cublas}};
}

Json bound_json(const ErrorBound& bound) {
  return {{"relative", bound.relative},
          {"floor_a", bound.floor_a},
          {"floor_b", bound.floor_b},
          {"floor_both", bound.floor_both}};
}

// Inside the windows of both splits, and for any operands that overflow nothing.
void add_bounds(Json& json, const Program& program, Accumulator accumulator, std::int64_t k) {
  json["bound_in_window"] = bound_json(error_bound(program, accumulator, k, true, true));
  json["bound_outside_window"] = bound_json(error_bound(program, accumulator, k, false, false));
}

Json plan_candidate_json(const Plan& plan, const Candidate& candidate) {
  Json json = candidate_json(candidate);
  if (candidate.scheme == nullptr || plan.problem.k == 0) return json;
  add_bounds(json, candidate.program, candidate.accumulator, plan.problem.products());
  json["program"] = scheme_json(*candidate.scheme, candidate.program);
  return json;
}

Json adapted_json(const Report::Adapted& adapted) {
  if (adapted.scheme == nullptr) return {};
  const Program& program = adapted.program;
  Json json = {{"scheme", adapted.scheme->name},
               {"split_a", split_json(program.split_a)},
               {"split_b", split_json(program.split_b)}};
  add_bounds(json, program, adapted.accumulator, adapted.k);
  return json;
}

// Slices and products are means over blocks: in fast mode and out of it.
Json error_free_json(const ErrorFreeCounts& counts) {
  if (counts.blocks == 0) return {};
  const auto mean = [&](std::int64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(counts.blocks);
  };
  return {{"blocks", counts.blocks},
          {"fast_blocks", counts.fast_blocks},
          {"slices_a", mean(counts.slices_a)},
          {"slices_b", mean(counts.slices_b)},
          {"products", mean(counts.products)},
          {"seconds",
           {{"split_a", counts.split_a_seconds},
            {"split_b", counts.split_b_seconds},
            {"products", counts.product_seconds},
            {"summation", counts.summation_seconds}}}};
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
          {"type", entry_type_name(problem.type, problem.complex)},
          {"layout", problem.layout == Layout::row_major ? "row-major" : "column-major"},
          {"batch_kind", problem.batch_kind == BatchKind::pointers ? "pointers" : "strided"},
          {"batch_count", problem.batch_count},
          {"stride_a", problem.stride_a},
          {"stride_b", problem.stride_b},
          {"stride_c", problem.stride_c},
          {"memory", problem.memory == MemorySpace::device ? "device" : "host"},
          {"scalars", problem.device_scalars ? "device" : "host"},
          {"prepared_a", problem.prepared_a},
          {"prepared_b", problem.prepared_b}};
}

std::int64_t read_integer(const Json& json, const char* name) {
  const Json& value = json.at(name);
  if (!value.is_number_integer()) {
    fail(Status::invalid_argument, "plan description: {} = {} is no integer", name, value.dump());
  }
  return value.get<std::int64_t>();
}

// Index of a word among those that the description writes.
std::int32_t read_word(const Json& json, const char* name, std::initializer_list<const char*> words) {
  const std::string value = json.at(name).get<std::string>();
  const auto found = std::find(words.begin(), words.end(), value);
  if (found == words.end())
    fail(Status::invalid_argument, "plan description: {} = \"{}\" is unknown", name, value);
  return static_cast<std::int32_t>(found - words.begin());
}

Op read_op(const Json& json, const char* name) {
  const std::int64_t op = read_integer(json, name);
  if (op < 0 || op > 2) fail(Status::invalid_argument, "plan description: {} = {} is not in 0...2", name, op);
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
  constexpr std::array types{OperandType::f32, OperandType::f64, OperandType::f32, OperandType::f64,
                             OperandType::dd};
  const std::int32_t type = read_word(json, "type", {"fp32", "fp64", "c32", "c64", "dd"});
  problem.type = types[type];
  problem.complex = type == 2 || type == 3;
  problem.layout = static_cast<Layout>(read_word(json, "layout", {"column-major", "row-major"}));
  problem.batch_kind = static_cast<BatchKind>(read_word(json, "batch_kind", {"strided", "pointers"}));
  problem.batch_count = read_integer(json, "batch_count");
  problem.stride_a = read_integer(json, "stride_a");
  problem.stride_b = read_integer(json, "stride_b");
  problem.stride_c = read_integer(json, "stride_c");
  problem.memory = static_cast<MemorySpace>(read_word(json, "memory", {"host", "device"}));
  problem.device_scalars = read_word(json, "scalars", {"host", "device"}) == 1;
  problem.prepared_a = json.value("prepared_a", false);  // texts of before have neither
  problem.prepared_b = json.value("prepared_b", false);
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

Json formats_json(const Engine& engine) {
  Json json = Json::object();
  for (const Format* format : formats) {
    const auto ways = engine.accumulators(format->id);
    if (ways.empty()) continue;
    Json names = Json::array();
    for (const Accumulator way : ways) names.push_back(accumulator_name(way));
    json[format->name] = names;
  }
  return json;
}

}  // namespace

std::string describe_plan(const Plan& plan) {
  Json json = document("kintsugi.plan");
  json["problem"] = problem_json(plan.problem);
  json["contract"] = {{"accuracy", plan.contract.accuracy}, {"coefficient", plan.contract.coefficient}};
  json["engine"] = plan.engine->name();
  json["candidates"] = Json::array();
  for (const Candidate& candidate : plan.candidates)
    json["candidates"].push_back(plan_candidate_json(plan, candidate));
  json["blocking"] = {{"m", plan.blocking.m}, {"n", plan.blocking.n}};
  json["workspace_bytes"] = plan.workspace_bytes;
  json["threads"] = plan.threads;
  json["settings"] = settings_json(plan.settings);
  json["warnings"] = plan.warnings;
  json["words"] = plan_words(plan);
  return text_of(json);
}

PlanDescription read_plan_description(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != "kintsugi.plan" || json.at("format_version") != format_version) {
      fail(Status::invalid_argument, "this is format {} version {}; kintsugi.plan version {} is read",
           json.at("format").dump(), json.at("format_version").dump(), format_version);
    }
    PlanDescription description{read_problem(json.at("problem")), {}};
    for (const auto& setting : setting_table) {
      const std::string name(setting.name);
      if (!json.at("settings").contains(name)) continue;  // a text of a version before the setting
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

std::string describe_report(const Report& report) {
  Json json = document("kintsugi.report");
  json["engine"] = report.engine == nullptr ? Json() : Json(report.engine->name());
  json["candidates"] = Json::array();
  for (std::size_t r = 0; r < report.candidates.size(); ++r) {
    if (report.entries[r] == 0) continue;
    Json candidate = candidate_json(report.candidates[r]);
    candidate["entries"] = report.entries[r];
    json["candidates"].push_back(candidate);
  }
  json["entries_scaled"] = report.entries_scaled;
  json["entries_with_special_values"] = report.entries_with_special_values;
  json["mended_entries"] = report.mended_entries;
  json["entries_unreachable"] = report.entries_unreachable;
  json["largest_span_a"] = report.ranges_known ? Json(report.largest_span_a) : Json();
  json["largest_span_b"] = report.ranges_known ? Json(report.largest_span_b) : Json();
  json["blocking"] = {{"m", report.blocking.m}, {"n", report.blocking.n}};
  json["workspace_bytes"] = report.workspace_bytes;
  json["adapted"] = adapted_json(report.adapted);
  json["error_free"] = error_free_json(report.error_free);
  return text_of(json);
}

std::string describe_schemes() {
  Json json = document("kintsugi.schemes");
  json["schemes"] = Json::array();
  for (const Scheme* scheme : all_schemes()) json["schemes"].push_back(scheme_json(*scheme, scheme->program));
  return text_of(json);
}

namespace {

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
  Json json = document("kintsugi.engines");
  json["engines"] = Json::array();
  for (const Engine* engine : all_engines()) {
    const std::string reason = engine->unavailable_reason();
    json["engines"].push_back({{"name", engine->name()},
                               {"summary", engine->summary()},
                               {"available", reason.empty()},
                               {"reason", reason},
                               {"details", reason.empty() ? engine->details() : ""},
                               {"requirements", requirements_json(*engine)},
                               {"accumulators", formats_json(*engine)}});
  }
  return text_of(json);
}

std::string describe_settings(const Settings& settings) {
  Json json = document("kintsugi.settings");
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
