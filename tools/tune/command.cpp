// kintsugi tune-program: finds the cheapest precision of every call of BLAS or cuBLAS that keeps the error of
// the whole program within a limit.
#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "io/atomic_file.hpp"
#include "program.hpp"
#include "report/page.hpp"
#include "report/pictures.hpp"
#include "tune/tuner.hpp"

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

std::size_t groups_tried(const Tuning& tuning) {
  return static_cast<std::size_t>(std::count_if(tuning.result.steps.begin(), tuning.result.steps.end(),
                                                [](const Step& step) { return step.lowered.size() > 1; }));
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
  for (const FlowInput& input : site.inputs)
    inputs.push_back({{"site", input.site},
                      {"calls", input.calls},
                      {"flow", input.found_by()},
                      {"operands", input.operands}});
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
          {"role", tuning.problem.roles.empty() ? Json() : Json(tuning.problem.roles[i])},
          {"kept_by_role", static_cast<bool>(tuning.result.kept_by_role[i])},
          {"inputs", inputs}};
}

Json step_json(const Tuning& tuning, const Step& step) {
  Json lowered = Json::array();
  for (const std::size_t site : step.lowered) lowered.push_back(tuning.sites[site].name);
  return {{"what", step.what},           {"lowered", lowered}, {"levels", level_names(tuning, step.levels)},
          {"error", number(step.error)}, {"cost", step.cost},  {"accepted", step.accepted}};
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
                      {"groups_tried", groups_tried(tuning)},
                      {"runs_of_the_program", tuning.runs_made}};
  result["validation"] = Json::array();
  for (const Validation& one : tuning.validations)
    result["validation"].push_back({{"seed", one.seed}, {"error", number(one.error)}, {"held", one.held}});
  return result;
}

// Returns the command line that repeats the tuning.
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

// Returns the rows of the sites' table, for the text and the HTML page.
std::vector<HeadedCells> site_table(const TuneRequest& request, const Tuning& tuning) {
  std::vector<HeadedCells> table;
  for (std::size_t i = 0; i < tuning.sites.size(); ++i) {
    const TunedSite& site = tuning.sites[i];
    std::string inputs;
    for (const FlowInput& input : site.inputs) {
      const auto found = std::find_if(tuning.sites.begin(), tuning.sites.end(),
                                      [&](const TunedSite& other) { return other.name == input.site; });
      inputs += fmt::format("{}{} ({})", inputs.empty() ? "" : ", ",
                            found == tuning.sites.end() ? input.site : site_label(*found), input.found_by());
    }
    constexpr std::size_t longest_name = 100;
    table.push_back(
        {{"call site", site.name.size() <= longest_name ? site.name : site_label(site)},
         {"type", site.type},
         {"calls", std::to_string(site.calls)},
         {"profiled time", time_text(site.seconds)},
         {"reads", inputs},
         {"role", tuning.problem.roles.empty() ? "-" : std::to_string(tuning.problem.roles[i])},
         {"level", tuning.level(i).name + (tuning.is_searched[i] ? "" : " (not searched)")},
         {request.cost == "time" ? "time" : "cost", cost_text(request, tuning.result.outcome.site_cost[i])},
         {"native calls' error", call_error_text(site.call_error)},
         {"calls' error", call_error_text(tuning.call_errors.value(site.name, Json()))},
         {"error of its last C", tuning.site_errors.contains(site.name)
                                     ? fmt::format("{:.3g}", read_number(tuning.site_errors.at(site.name)))
                                     : "-"}});
  }
  return table;
}

// Returns the rows of the table of the search's steps.
std::vector<HeadedCells> step_table(const TuneRequest& request, const Tuning& tuning) {
  std::vector<HeadedCells> table;
  for (const Step& step : tuning.result.steps) {
    const char* verdict = step.accepted                ? "accepted"
                          : step.error > request.limit ? "beyond the limit"
                                                       : "no cheaper";
    table.push_back({{"step", step.what},
                     {"levels", levels_text(tuning, step.levels)},
                     {"error", fmt::format("{:.3g}", step.error)},
                     {request.cost == "time" ? "time of products" : "cost", cost_text(request, step.cost)},
                     {"verdict", verdict}});
  }
  return table;
}

std::string groups_sentence(const Tuning& tuning) {
  const std::set<std::size_t> roles(tuning.problem.roles.begin(), tuning.problem.roles.end());
  return fmt::format(
      "By the compiler's data flow {} sites have {} roles; {} steps lowered several sites together, and {} "
      "sites keep their level by their role.",
      tuning.sites.size(), roles.size(), groups_tried(tuning),
      std::count(tuning.result.kept_by_role.begin(), tuning.result.kept_by_role.end(), true));
}

// Returns sentences on the limit, the cost, the runs of the program and the validation.
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
  if (!tuning.problem.roles.empty()) sentences.push_back(groups_sentence(tuning));
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

// ---------------------------------------------------------------- graph

// The graph has one box a site, from top to bottom. An arc leads from each site to every site that reads its
// results: on the right side if it leads downwards, on the left side if it leads upwards. An arc that only
// the compiler has found is dashed, one that only memory has found is dotted.
constexpr int box_left = 150, box_width = 420, box_height = 44;
constexpr int box_pitch = 70;  // from the top of one box to the top of the next
constexpr int margin = 10;     // above the first box

double middle(std::size_t site) { return static_cast<double>(site) * box_pitch + box_height / 2.0 + margin; }

std::string box(const Tuning& tuning, std::size_t i) {
  const TunedSite& site = tuning.sites[i];
  const double upper = middle(i) - box_height / 2.0;
  const std::string first = site_label(site);
  const std::string second = fmt::format("{}, {} {}, profiled {}", tuning.level(i).name, site.calls,
                                         site.calls == 1 ? "call" : "calls", time_text(site.seconds));
  return fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"none\" stroke=\"currentColor\"/>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"currentColor\">{}</text>\n"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"currentColor\" font-size=\"12\">{}</text>\n",
      box_left, upper, box_width, box_height, box_left + box_width / 2, upper + 18,
      escaped(first.size() > 50 ? "..." + first.substr(first.size() - 47) : first), box_left + box_width / 2,
      upper + 36, escaped(second));
}

std::string dash_style(const FlowInput& input) {
  if (input.operands.empty()) return "stroke-dasharray=\"2 4\" ";
  return input.calls == 0 ? "stroke-dasharray=\"7 4\" " : "";
}

std::string arc(std::size_t from, std::size_t to, const std::string& style) {
  const bool is_down = from < to;
  const double distance = std::min(130.0, 30 + 25 * std::abs(middle(from) - middle(to)) / box_pitch);
  const double x = is_down ? box_left + box_width : box_left;
  const double reach = is_down ? x + distance : x - distance;
  const double begin = middle(from) + (is_down ? 6 : -6), end = middle(to) + (is_down ? -6 : 6);
  return fmt::format(
      "<path d=\"M {0} {1} C {2} {1}, {2} {3}, {0} {3}\" fill=\"none\" stroke=\"currentColor\" "
      "{4}marker-end=\"url(#head)\"/>\n",
      x, begin, reach, end, style);
}

std::string graph(const Tuning& tuning) {
  const double height = static_cast<double>(tuning.sites.size()) * box_pitch + margin;
  std::string svg = fmt::format(
      "<h2>Which results feed which call site</h2>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "
      "720 {0}\" "
      "width=\"720\" height=\"{0}\" role=\"img\" aria-label=\"Graph of the call sites\">\n<defs><marker "
      "id=\"head\" "
      "viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path "
      "d=\"M 0 0 "
      "L 8 4 L 0 8 z\" fill=\"currentColor\"/></marker></defs>\n",
      height);
  for (std::size_t to = 0; to < tuning.sites.size(); ++to) {
    svg += box(tuning, to);
    for (const FlowInput& input : tuning.sites[to].inputs)
      for (std::size_t from = 0; from < tuning.sites.size(); ++from)
        if (from != to && tuning.sites[from].name == input.site)
          svg += arc(from, to, tuning.problem.roles.empty() ? "" : dash_style(input));
  }
  svg += "</svg>\n";
  if (tuning.problem.roles.empty()) return svg;
  return svg + "<p>Dashed: found by the compiler alone. Dotted: by the memory of operands alone.</p>\n";
}

// ---------------------------------------------------------------- figures

Picture picture_of(const TuneRequest& request, const Tuning& tuning, const char* name, const char* label,
                   double Step::*value) {
  Chart chart{.title = label, .x_label = "step", .y_label = label, .log_x = false};
  Series all{.label = "every step", .colour = 0, .style = 0, .points = {}};
  Series accepted{.label = "accepted", .colour = 1, .style = 1, .points = {}};
  for (std::size_t i = 0; i < tuning.result.steps.size(); ++i) {
    const Step& step = tuning.result.steps[i];
    all.points.emplace_back(static_cast<double>(i + 1), step.*value);
    if (step.accepted) accepted.points.emplace_back(static_cast<double>(i + 1), step.*value);
  }
  if (value == &Step::error)
    chart.limits.push_back({"limit", -1, 0, {{1, request.limit}, {all.points.back().first, request.limit}}});
  chart.series = {all, accepted};
  return {.chart = chart, .name = name};
}

std::string preface_of(const TuneRequest& request, const Tuning& tuning) {
  std::string html = "<ul>\n";
  for (const std::string& sentence : tuning_sentences(request, tuning))
    html += "<li>" + escaped(sentence) + "</li>\n";
  html += "</ul>\n<h2>Call sites and their levels</h2>\n" + html_table(site_table(request, tuning)) +
          graph(tuning) + "<h2>Every step of the search</h2>\n" + html_table(step_table(request, tuning));
  if (tuning.validations.empty()) return html;
  std::vector<HeadedCells> seeds;
  for (const Validation& one : tuning.validations)
    seeds.push_back({{"seed", std::to_string(one.seed)},
                     {"error", fmt::format("{:.3g}", one.error)},
                     {"limit", one.held ? "held" : "NOT held"}});
  return html + "<h2>Inputs of other seeds</h2>\n" + html_table(seeds);
}

std::string tuning_page(const TuneRequest& request, const Tuning& tuning) {
  Json found = tuning_document(request, tuning);
  found["rows"] = found.at("steps");  // report_page() counts the member "rows"
  const std::string cost = request.cost == "time" ? "seconds of products" : "cost";
  std::vector<Figure> figures;
  if (tuning.result.steps.size() > 1)
    figures.push_back({"The search",
                       {picture_of(request, tuning, "cost", cost.c_str(), &Step::cost),
                        picture_of(request, tuning, "error", "error of the program", &Step::error)}});
  return report_page({"Precision of a program's call sites", preface_of(request, tuning)},
                     {{"tuning", found, tune_command(request)}}, {}, figures);
}

void check(const TuneRequest& request) {
  refuse_settings({"scheme", "policy", "accuracy"}, "--levels name what runs");
  if (!(request.limit > 0)) fail("--limit", "{:g} is not above 0", request.limit);
  if ((request.metric == "command") == request.command.empty())
    fail("--command", "{}",
         request.command.empty() ? "is missing: the metric command needs one" : "needs --metric command");
  if (request.metric == "command" && !request.output.empty())
    fail("--output", "has no use with --metric command, which compares no file");
  if (!request.has_site_outputs() && request.metric != "command" && request.output.empty())
    fail("--output", "is needed with --library cublas, whose results stay in device memory");
  if (request.cost == "weights" && request.repeat > 1)
    fail("--repeat", "{} has no effect with --cost weights, which measures no times", request.repeat);
  if (request.cost == "time")
    for (const std::string& level : request.levels)
      if (level.find('@') != std::string::npos)
        fail("--levels", "the weight of {} has no effect without --cost weights", level);
  check_writable(request.sites_file);
}

bool has_weights(const TuneRequest& request) {
  return std::any_of(request.levels.begin(), request.levels.end(),
                     [](const std::string& level) { return level.find('@') != std::string::npos; });
}

void print_text(const TuneRequest& request, const Tuning& tuning) {
  fmt::print("{}\n{}\n", make_table(step_table(request, tuning)).text(),
             make_table(site_table(request, tuning)).text());
  for (const std::string& sentence : tuning_sentences(request, tuning)) fmt::print("{}\n", sentence);
  if (request.cost == "weights" && !has_weights(request))
    fmt::print("No level has a weight (--levels NAME@WEIGHT), so that none is cheaper than another.\n");
  fmt::print("\nConfiguration: {}\nReport: {}, {}\n", request.sites_file, request.beside(".report.json"),
             request.beside(".report.html"));
}

void run(const TuneRequest& request) {
  require_settings();
  check(request);
  const Tuning tuning = tune(request);
  const Json found = tuning_document(request, tuning);
  write_text(request.sites_file, configuration(request, tuning).dump(2) + "\n");
  write_text(request.beside(".report.json"), found.dump(2) + "\n");
  write_text(request.beside(".report.html"), tuning_page(request, tuning));
  if (request.json)
    print(found);
  else
    print_text(request, tuning);
  if (!tuning.held())
    throw Finding(
        fmt::format("--validate {}: the limit of {:g} did not hold with every seed; {} has the errors",
                    request.validate, request.limit, request.beside(".report.json")));
}

constexpr const char* footer =
    "Example:\n"
    "  kintsugi tune-program --limit 1e-5 --output Y.npy --validate 5 -- ./perceptron 128 96 160 Y.npy\n"
    "  KINTSUGI_SITES=sites.json kintsugi run --blas -- ./perceptron 128 96 160 Y.npy\n"
    "\n"
    "The program first runs under the drop-in to find its call sites. It then runs with the most accurate "
    "levels. After\n"
    "that, the site that costs most is lowered by a level, again and again, as long as the program's error "
    "keeps the limit.\n"
    "If a lower level breaks the limit, the site is lowered while a cheaper predecessor is raised, or the "
    "site keeps its level.\n"
    "Programs compiled with kintsugi-clang have their sites lowered in groups, in fewer runs.\n"
    "\n"
    "The error: of the file --output; else the largest of all sites, each by the C of its last call. R is "
    "the same in a\n"
    "reference run. frobenius: |C - R| / |R| in the Frobenius norm; max: max |C - R| / max |R|; command: the "
    "number that\n"
    "--command prints after a run. A program that fails has an infinite error. Levels are native, exact or "
    "schemes\n"
    "(kintsugi schemes). By default native, fp16x3, tf32, fp16 for FP32 and native, ozaki2 with 12, 9 and 6 "
    "moduli for FP64.\n"
    "\n"
    "Beside sites.json it writes sites.report.json, sites.report.html and sites.state.json, by which the "
    "same command\n"
    "goes on after an interruption. The whole description: docs/TUNING.md.";

// Adds the options that define the error and select the library.
void add_error_options(CLI::App& command, TuneRequest& request) {
  command.add_option("--limit", request.limit, "Largest error of the program")->required();
  command.add_option("--library", request.library, "Whose calls are tuned: blas or cublas")
      ->check(one_of({"blas", "cublas"}))
      ->capture_default_str();
  command.add_option("--metric", request.metric, "frobenius, max or command")
      ->check(one_of({"frobenius", "max", "command"}))
      ->capture_default_str();
  command.add_option("--command", request.command,
                     "Shell command that prints the error, for --metric command");
  command
      .add_option("--reference", request.reference, "What errors are relative to: all sites native, or exact")
      ->check(one_of({"native", "exact"}))
      ->capture_default_str();
  command.add_option("--output", request.output,
                     "File that the program writes, .npy, removed before each run [the sites' last outputs]");
}

// Adds the options of the search and of the files that are written.
void add_search_options(CLI::App& command, TuneRequest& request) {
  command
      .add_option("--levels", request.levels, "Levels NAME or NAME@WEIGHT, the most accurate first [by type]")
      ->delimiter(',');
  command.add_option("--search", request.search, "greedy, estimated or exhaustive")
      ->check(one_of({"greedy", "estimated", "exhaustive"}))
      ->capture_default_str();
  command
      .add_option("--cost", request.cost,
                  "time in the library, or weights: multiplications by the levels' weights")
      ->check(one_of({"time", "weights"}))
      ->capture_default_str();
  command.add_option("--repeat", request.repeat, "Runs of each combination, of which the quickest counts")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  command
      .add_option("--min-share", request.min_share,
                  "Share of the multiplications below which a site keeps its first level")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command
      .add_option("--validate", request.validate, "Runs of the result with KINTSUGI_TUNE_SEED = 1 ... N [0]")
      ->check(whole_number(0, 100000));
  command
      .add_option("--frames", request.frames,
                  "Frames of the call stack that tell sites apart, for wrappers of BLAS")
      ->check(whole_number(1, 64))
      ->capture_default_str();
  command
      .add_option("--error-samples", request.error_samples,
                  "Calls of each site that are compared with exact ones on the same operands, 0: none")
      ->check(whole_number(0, 1 << 20))
      ->capture_default_str();
  command.add_option("-o,--sites", request.sites_file, "The configuration, a file for KINTSUGI_SITES")
      ->capture_default_str();
  command.add_flag("--json", request.json, "Print one JSON document instead of text");
  command.add_option("PROGRAM", request.program, "Program and its arguments, after --")->required();
  command.positionals_at_end();
}

}  // namespace

void add_tune_program(CLI::App& program, Action& action) {
  auto request = std::make_shared<TuneRequest>();
  CLI::App* command = program.add_subcommand(
      "tune-program",
      "Find the cheapest precision of every BLAS or cuBLAS call of a program under an error limit");
  command->footer(footer);
  add_error_options(*command, *request);
  add_search_options(*command, *request);
  command->callback([request, &action] { action = [request] { run(*request); }; });
}

}  // namespace kintsugi::tools
