#include "planner/describe/plan.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "planner/describe/json.hpp"
#include "planner/describe/words.hpp"

namespace kintsugi::core {

namespace {

// Version 1 had other names for members of candidates. Version 1 is still read: only problem and settings are
// read back, and these are the same.
constexpr int format_version = 2;

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
  json["offloaded"] = plan.is_offloaded();
  json["settings"] = settings_json(plan.settings);
  json["warnings"] = plan.warnings;
  json["words"] = plan_words(plan);
  return text_of(json);
}

PlanDescription read_plan_description(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const Json& version = json.at("format_version");
    if (json.at("format") != "kintsugi.plan" || (version != 1 && version != format_version)) {
      fail(Status::invalid_argument, "this is format {} version {}; kintsugi.plan versions 1 and {} are read",
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

}  // namespace kintsugi::core
