#include "tune/document.hpp"

#include <algorithm>
#include <set>

namespace kintsugi::tools {

namespace {

std::string cost_text(const TuneRequest& request, double cost) {
  return request.cost == "time" ? time_text(cost) : fmt::format("{:.4g}", cost);
}

std::string levels_text(const Tuning& tuning, const Levels& levels) {
  std::string text;
  for (std::size_t site = 0; site < levels.size(); ++site)
    if (tuning.is_searched[site]) text += (text.empty() ? "" : ", ") + tuning.levels[site][levels[site]].name;
  return text;
}

std::string call_error_text(const Json& error) {
  return error.is_null() ? "-" : fmt::format("{:.3g}", read_number(error.at("relative")));
}

std::size_t combinations_tried(const Tuning& tuning) {
  std::set<Levels> tried;
  for (const Step& step : tuning.result.steps) tried.insert(step.levels);
  return tried.size();
}

Json level_names(const Tuning& tuning, const Levels& levels) {
  Json names = Json::array();
  for (std::size_t site = 0; site < levels.size(); ++site)
    names.push_back(tuning.levels[site][levels[site]].name);
  return names;
}

Json site_json(const Tuning& tuning, std::size_t i) {
  const TunedSite& site = tuning.sites[i];
  Json inputs = Json::array(), levels = Json::array();
  for (const auto& [name, calls] : site.inputs) inputs.push_back({{"site", name}, {"calls", calls}});
  for (const Level& level : tuning.levels[i])
    levels.push_back({{"name", level.name}, {"weight", level.weight}});
  return {{"site", site.name},
          {"module", site.module},
          {"function", site.function},
          {"type", site.type},
          {"calls", site.calls},
          {"multiplications", site.multiplications},
          {"profiled_seconds", site.seconds},
          {"searched", static_cast<bool>(tuning.is_searched[i])},
          {"levels", levels},
          {"level", tuning.level(i).name},
          {"cost", tuning.result.outcome.site_cost[i]},
          {"error", tuning.site_errors.value(site.name, Json())},
          {"call_error", tuning.call_errors.value(site.name, Json())},
          {"native_call_error", site.call_error},
          {"callers", site.callers},
          {"inputs", inputs}};
}

Json step_json(const Tuning& tuning, const Step& step) {
  return {{"what", step.what},
          {"levels", level_names(tuning, step.levels)},
          {"error", number(step.error)},
          {"cost", step.cost},
          {"accepted", step.accepted}};
}

Json arguments_json(const TuneRequest& request) {
  return {{"library", request.library},     {"limit", request.limit},
          {"metric", request.metric},       {"command", request.command},
          {"reference", request.reference}, {"output", request.output},
          {"search", request.search},       {"cost", request.cost},
          {"repeat", request.repeat},       {"min_share", request.min_share},
          {"frames", request.frames},       {"error_samples", request.error_samples},
          {"program", request.program}};
}

}  // namespace

Json tuning_document(const TuneRequest& request, const Tuning& tuning) {
  Json result = document("tune-program");
  result["arguments"] = arguments_json(request);
  result["sites"] = Json::array();
  for (std::size_t i = 0; i < tuning.sites.size(); ++i) result["sites"].push_back(site_json(tuning, i));
  result["steps"] = Json::array();
  for (const Step& step : tuning.result.steps) result["steps"].push_back(step_json(tuning, step));
  result["result"] = {{"configuration", request.sites_file},
                      {"levels", level_names(tuning, tuning.result.levels)},
                      {"error", number(tuning.result.outcome.error)},
                      {"cost", tuning.result.outcome.cost()},
                      {"first_cost", tuning.result.steps.front().cost},
                      {"combinations", combinations(tuning.problem)},
                      {"combinations_tried", combinations_tried(tuning)},
                      {"runs_of_the_program", tuning.runs_made}};
  result["validation"] = Json::array();
  for (const Validation& one : tuning.validations)
    result["validation"].push_back({{"seed", one.seed}, {"error", number(one.error)}, {"held", one.held}});
  return result;
}

std::string tune_command(const TuneRequest& request) {
  std::string text =
      fmt::format("kintsugi tune-program --limit {:g} --metric {}", request.limit, request.metric);
  if (request.library != "blas") text += " --library " + request.library;
  if (!request.command.empty()) text += " --command " + quoted(request.command);
  text +=
      fmt::format(" --reference {} --search {} --cost {}", request.reference, request.search, request.cost);
  if (!request.output.empty()) text += " --output " + quoted(request.output);
  if (!request.levels.empty()) text += fmt::format(" --levels {}", fmt::join(request.levels, ","));
  if (request.repeat != 1) text += fmt::format(" --repeat {}", request.repeat);
  if (request.frames != 1) text += fmt::format(" --frames {}", request.frames);
  if (request.validate != 0) text += fmt::format(" --validate {}", request.validate);
  text += " -o " + quoted(request.sites_file) + " --";
  for (const std::string& word : request.program) text += " " + quoted(word);
  return text;
}

std::vector<std::string> site_heads(const TuneRequest& request) {
  return {"call site",
          "type",
          "calls",
          "profiled time",
          "reads",
          "level",
          request.cost == "time" ? "time" : "cost",
          "native calls' error",
          "calls' error",
          "error of its last C"};
}

std::vector<std::string> site_cells(const TuneRequest& request, const Tuning& tuning, std::size_t i) {
  const TunedSite& site = tuning.sites[i];
  std::string inputs;
  for (const auto& [name, calls] : site.inputs) {
    const auto found = std::find_if(tuning.sites.begin(), tuning.sites.end(),
                                    [&name = name](const TunedSite& other) { return other.name == name; });
    inputs += (inputs.empty() ? "" : ", ") + (found == tuning.sites.end() ? name : site_label(*found));
  }
  constexpr std::size_t longest_name = 100;
  return {site.name.size() <= longest_name ? site.name : site_label(site),
          site.type,
          std::to_string(site.calls),
          time_text(site.seconds),
          inputs,
          tuning.level(i).name + (tuning.is_searched[i] ? "" : " (not searched)"),
          cost_text(request, tuning.result.outcome.site_cost[i]),
          call_error_text(site.call_error),
          call_error_text(tuning.call_errors.value(site.name, Json())),
          tuning.site_errors.contains(site.name)
              ? fmt::format("{:.3g}", read_number(tuning.site_errors.at(site.name)))
              : "-"};
}

std::vector<std::string> step_heads(const TuneRequest& request) {
  return {"step", "levels", "error", request.cost == "time" ? "time of products" : "cost", "verdict"};
}

std::vector<std::string> step_cells(const TuneRequest& request, const Tuning& tuning, std::size_t i) {
  const Step& step = tuning.result.steps[i];
  const char* verdict = step.accepted                ? "accepted"
                        : step.error > request.limit ? "beyond the limit"
                                                     : "no cheaper";
  return {step.what, levels_text(tuning, step.levels), fmt::format("{:.3g}", step.error),
          cost_text(request, step.cost), verdict};
}

std::vector<std::string> tuning_sentences(const TuneRequest& request, const Tuning& tuning) {
  const Outcome& outcome = tuning.result.outcome;
  const double first = tuning.result.steps.front().cost;
  std::vector<std::string> sentences{
      fmt::format("The error is {:.3g}, within the limit of {:g}.", outcome.error, request.limit),
      fmt::format("The {} is {}, where the first levels have {} ({:.3g} of it).",
                  request.cost == "time" ? "time of products" : "cost", cost_text(request, outcome.cost()),
                  cost_text(request, first), first > 0 ? outcome.cost() / first : 1),
      fmt::format("{} of {:.0f} combinations were tried; this call ran the program {} times.",
                  combinations_tried(tuning), combinations(tuning.problem), tuning.runs_made)};
  if (tuning.validations.empty()) return sentences;
  const auto held = std::count_if(tuning.validations.begin(), tuning.validations.end(),
                                  [](const Validation& one) { return one.held; });
  double worst = 0;
  for (const Validation& one : tuning.validations) worst = std::max(worst, one.error);
  sentences.push_back(
      fmt::format("With the inputs of {} seeds the limit held {} times; the largest error is {:.3g}.",
                  tuning.validations.size(), held, worst));
  return sentences;
}

}  // namespace kintsugi::tools
