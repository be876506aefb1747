#include "explain/plans.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kintsugi::tools {

namespace {

ChainCandidate candidate_of(const Json& candidate) {
  ChainCandidate result{cell(candidate, "scheme"),
                        std::nullopt,
                        0,
                        candidate.at("accepted_by_norms").get<bool>(),
                        candidate.at("checked").get<bool>(),
                        candidate.at("fixed_order").get<bool>()};
  if (!candidate.at("largest_dynamic_range").is_null())
    result.dynamic_range = candidate.at("largest_dynamic_range").get<int>();
  if (candidate.contains("program")) result.products = candidate.at("program").at("products").get<int>();
  return result;
}

std::string reason_of(const Choice& choice, const Json& plan, int span) {
  if (!choice.named.empty())
    return fmt::format("{} is named by the settings ({}), so it runs whatever it costs", choice.named,
                       cell(plan.at("settings").at("scheme"), "source"));
  if (!choice.taken)
    return fmt::format("vectors span up to {} and no program is proved for more than {}", binades(span),
                       *choice.candidates.back().dynamic_range);
  if (choice.candidates.front().by_norms)
    return "it runs unless the norms of all vectors, which the device finds, prove a candidate before it";
  if (choice.checked())
    return "residues; every element is checked against the accuracy, and elements that fail go to the next "
           "candidate";
  if (*choice.taken > 0 || choice.chosen()->dynamic_range)
    return "the first of the fallback chain that takes vectors of up to " + binades(span);
  return choice.policy == "auto"
             ? fmt::format("engine {} expects no emulation to be faster than its native product",
                           choice.engine)
             : "no emulation is proved for this accuracy and length";
}

}  // namespace

std::string binades(int span) { return fmt::format("{} binade{}", span, span == 1 ? "" : "s"); }

Choice choose(const kintsugi_problem& problem, const std::string& policy, const std::string& accuracy,
              const std::string& engine, int span) {
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
    return {policy, "", {}, std::nullopt, kintsugi_last_error(), ""};
  require("--engine", status);
  const Json description = describe(plan);
  const std::string named = cell(description.at("settings").at("scheme"), "value");
  Choice choice{policy, cell(description, "engine"), {}, std::nullopt, "", named};
  for (const auto& candidate : description.at("candidates")) {
    choice.candidates.push_back(candidate_of(candidate));
    const ChainCandidate& last = choice.candidates.back();
    if (!choice.taken && !last.by_norms && last.takes(span)) choice.taken = choice.candidates.size() - 1;
  }
  choice.reason = reason_of(choice, description, span);
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
  const auto length = static_cast<double>(k) + 8;
  if (name == "reproducible") return {name, length * (type == Type::float32 ? 0x1p-24 : 0x1p-53)};
  if (name == "fp32") return {name, length * 0x1p-24};
  if (name == "fp64") return {name, length * 0x1p-53};
  if (name == "exact") return {name, 0};
  return {name, parse_number("--accuracy", name)};
}

Json choice_document(const Choice& choice) {
  Json candidates = Json::array();
  for (const ChainCandidate& candidate : choice.candidates) {
    candidates.push_back(
        {{"scheme", candidate.scheme},
         {"largest_dynamic_range", candidate.dynamic_range ? Json(*candidate.dynamic_range) : Json()},
         {"products", candidate.products},
         {"accepted_by_norms", candidate.by_norms},
         {"checked", candidate.checked},
         {"fixed_order", candidate.fixed_order}});
  }
  return {{"policy", choice.policy},
          {"candidates", candidates},
          {"chosen", choice.taken ? Json(choice.chosen()->scheme) : Json()},
          {"reason", choice.reason}};
}

}  // namespace kintsugi::tools
