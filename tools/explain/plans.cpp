#include "explain/plans.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace kintsugi::tools {

namespace {

LadderRung rung_of(const Json& rung) {
  LadderRung result{cell(rung, "scheme"),
                    std::nullopt,
                    0,
                    rung.at("proved_by_norms").get<bool>(),
                    rung.at("checked").get<bool>(),
                    rung.at("fixed_order").get<bool>()};
  if (!rung.at("largest_span").is_null()) result.largest_span = rung.at("largest_span").get<int>();
  if (rung.contains("program")) result.products = rung.at("program").at("products").get<int>();
  return result;
}

std::string reason_of(const Choice& choice, const Json& plan, int span) {
  if (!choice.named.empty())
    return fmt::format("{} is named by the settings ({}), so it runs whatever it costs", choice.named,
                       cell(plan.at("settings").at("scheme"), "source"));
  if (!choice.taken)
    return fmt::format("vectors span up to {} and no program is proved for more than {}", binades(span),
                       *choice.rungs.back().largest_span);
  if (choice.rungs.front().by_norms)
    return "taken where no rung before it is proved by the norms of all vectors, which the device finds";
  if (choice.checked())
    return "residues, every entry checked against the accuracy; what a rung does not settle goes to the next";
  if (*choice.taken > 0 || choice.chosen()->largest_span)
    return "the first of the ladder that takes vectors of up to " + binades(span);
  return choice.policy == "auto"
             ? fmt::format("engine {} claims no emulation that is quicker than its native product",
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
  for (const auto& rung : description.at("rungs")) {
    choice.rungs.push_back(rung_of(rung));
    const LadderRung& last = choice.rungs.back();
    if (!choice.taken && !last.by_norms && last.takes(span)) choice.taken = choice.rungs.size() - 1;
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
  if (name == "fp32") return {name, length * 0x1p-24};
  if (name == "fp64") return {name, length * 0x1p-53};
  if (name == "exact") return {name, 0};
  return {name, parse_number("--accuracy", name)};
}

Json choice_document(const Choice& choice) {
  Json rungs = Json::array();
  for (const LadderRung& rung : choice.rungs) {
    rungs.push_back({{"scheme", rung.scheme},
                     {"largest_span", rung.largest_span ? Json(*rung.largest_span) : Json()},
                     {"products", rung.products},
                     {"proved_by_norms", rung.by_norms},
                     {"checked", rung.checked},
                     {"fixed_order", rung.fixed_order}});
  }
  return {{"policy", choice.policy},
          {"ladder", rungs},
          {"chosen", choice.taken ? Json(choice.chosen()->scheme) : Json()},
          {"reason", choice.reason}};
}

}  // namespace kintsugi::tools
