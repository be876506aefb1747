#include "planner/describe/registries.hpp"

#include "engines/registry.hpp"
#include "formats/formats.hpp"
#include "planner/describe/json.hpp"

namespace kintsugi::core {

std::string describe_schemes() {
  Json json = json_document("kintsugi.schemes");
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
