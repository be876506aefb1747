#include "explain/plans.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kintsugi::tools {

namespace {

ChainCandidate candidate_of(const Json& candidate) {
  ChainCandidate result{.scheme = cell(candidate, "scheme"),
                        .largest_dynamic_range = {},
                        .by_norms = candidate.at("accepted_by_norms").get<bool>(),
                        .checked = candidate.at("checked").get<bool>(),
                        .fixed_order = candidate.at("fixed_order").get<bool>()};
  if (!candidate.at("largest_dynamic_range").is_null())
    result.largest_dynamic_range = candidate.at("largest_dynamic_range").get<int>();
  if (candidate.contains("program")) result.products = candidate.at("program").at("products").get<int>();
  return result;
}

std::string reason_of(const Choice& choice, const Json& plan, int dynamic_range) {
  if (!choice.named_scheme.empty())
    return fmt::format("{} is named by the settings ({}), so it runs whatever it costs", choice.named_scheme,
                       cell(plan.at("settings").at("scheme"), "source"));
  if (!choice.selected)
    return fmt::format("vectors span up to {} and no program is proved for more than {}",
                       binades_text(dynamic_range), *choice.candidates.back().largest_dynamic_range);
  if (choice.candidates.front().by_norms)
    return "it runs unless the norms of all vectors, which the device finds, prove a candidate before it";
  if (choice.has_checked())
    return "residues; every element is checked against the accuracy, and elements that fail go to the next "
           "candidate";
  if (*choice.selected > 0 || choice.selected_candidate()->largest_dynamic_range)
    return "the first of the fallback chain that takes vectors of up to " + binades_text(dynamic_range);
  return choice.policy == "auto"
             ? fmt::format("engine {} expects no emulation to be faster than its native product",
                           choice.engine)
             : "no emulation is proved for this accuracy and length";
}

}  // namespace

std::string binades_text(int binades) { return fmt::format("{} binade{}", binades, binades == 1 ? "" : "s"); }

Choice choose(const kintsugi_problem& problem, const std::string& policy, const std::string& accuracy,
              const std::string& engine, int dynamic_range) {
  const Handle handle = make_handle();
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.policy = policy.c_str();
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) require(std::string("--") + name, kintsugi_set(handle.get(), name, value.c_str()));
  };
  set("accuracy", accuracy);
  set("engine", engine);
  kintsugi_plan created = nullptr;
  const kintsugi_status status = kintsugi_plan_create(handle.get(), &problem, &options, &created);
  const Plan plan(created);
  if (status == KINTSUGI_CONTRACT_UNREACHABLE)
    return {.policy = policy,
            .engine = "",
            .candidates = {},
            .selected = {},
            .reason = kintsugi_last_error(),
            .named_scheme = ""};
  require("--engine", status);
  const Json description = describe(plan);
  Choice choice{.policy = policy,
                .engine = cell(description, "engine"),
                .candidates = {},
                .selected = {},
                .reason = "",
                .named_scheme = cell(description.at("settings").at("scheme"), "value")};
  for (const auto& candidate : description.at("candidates")) {
    choice.candidates.push_back(candidate_of(candidate));
    const ChainCandidate& added = choice.candidates.back();
    // The norms are not known here, so candidates that are accepted by norms are not selected.
    if (!choice.selected && !added.by_norms && added.accepts(dynamic_range))
      choice.selected = choice.candidates.size() - 1;
  }
  choice.reason = reason_of(choice, description, dynamic_range);
  return choice;
}

Contract contract_of(const std::string& accuracy, Type type, std::int64_t k) {
  std::string name = accuracy;
  if (name.empty()) {
    const Json settings = describe_settings(nullptr);
    for (const auto& setting : settings.at("settings")) {
      if (cell(setting, "name") == "accuracy") name = cell(setting, "value");
    }
  }
  if (name.empty()) name = type_text(type);
  const auto unit_roundoffs = static_cast<double>(k) + 8;
  const double fp32_coefficient = unit_roundoffs * 0x1p-24;
  const double fp64_coefficient = unit_roundoffs * 0x1p-53;
  // The accuracy `reproducible` allows the error of the operands' type.
  if (name == "reproducible") return {name, type == Type::float32 ? fp32_coefficient : fp64_coefficient};
  if (name == "fp32") return {name, fp32_coefficient};
  if (name == "fp64") return {name, fp64_coefficient};
  if (name == "exact") return {name, 0};
  return {name, parse_number("--accuracy", name)};
}

Json choice_document(const Choice& choice) {
  Json candidates = Json::array();
  for (const ChainCandidate& candidate : choice.candidates) {
    candidates.push_back({{"scheme", candidate.scheme},
                          {"largest_dynamic_range",
                           candidate.largest_dynamic_range ? Json(*candidate.largest_dynamic_range) : Json()},
                          {"products", candidate.products},
                          {"accepted_by_norms", candidate.by_norms},
                          {"checked", candidate.checked},
                          {"fixed_order", candidate.fixed_order}});
  }
  return {{"policy", choice.policy},
          {"candidates", candidates},
          {"chosen", choice.selected ? Json(choice.selected_candidate()->scheme) : Json()},
          {"reason", choice.reason}};
}

}  // namespace kintsugi::tools
