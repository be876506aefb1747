// kintsugi-lab reproduce: reproduces figures of the papers and compares their claims with measurements.
#include <algorithm>
#include <memory>

#include "lab/commands.hpp"
#include "lab/reproduce/markdown.hpp"
#include "lab/reproduce/run.hpp"
#include "tools/io/atomic_file.hpp"
#include "tools/measure/machine/device.hpp"
#include "tools/measure/nearest_name.hpp"
#include "tools/report/pictures.hpp"

namespace kintsugi::tools {

namespace {

struct ReproduceRequest {
  std::vector<std::string> names;
  std::string markdown;
  ReproduceOptions options;
  bool list = false;
  bool json = false;
};

std::vector<const PaperFigure*> wanted_figures(const std::vector<std::string>& names) {
  std::vector<const PaperFigure*> wanted;
  std::string known = "all";
  for (const PaperFigure& figure : paper_figures()) {
    known += ", " + figure.name;
    for (const auto& name : names) {
      if (name != "all" && name != figure.name) continue;
      wanted.push_back(&figure);
      break;
    }
  }
  for (const auto& name : names) {
    const bool found =
        name == "all" || std::any_of(wanted.begin(), wanted.end(),
                                     [&](const PaperFigure* figure) { return figure->name == name; });
    if (!found)
      fail("FIGURE", "\"{}\" is not known{}", name, measure::accepted_names(name, "accepted:", known));
  }
  return wanted;
}

Json listed(const PaperFigure& figure) {
  return {{"name", figure.name},
          {"paper", figure.paper},
          {"place", figure.place},
          {"subject", figure.subject},
          {"claims", figure.claims.size()}};
}

void print_list(bool json) {
  Json result = document("reproduction-list");
  result["figures"] = Json::array();
  Table table({"figure", "paper", "place", "claims", "subject"});
  for (const PaperFigure& figure : paper_figures()) {
    result["figures"].push_back(listed(figure));
    table.add(
        {figure.name, figure.paper, figure.place, std::to_string(figure.claims.size()), figure.subject});
  }
  if (json) return print(result);
  fmt::print("{}", table.text());
}

void print_figure(const Json& figure) {
  constexpr std::size_t width = 110;
  fmt::print("{}: {} ({}, {})\n", cell(figure, "name"), cell(figure, "subject"), cell(figure, "paper"),
             cell(figure, "place"));
  for (const Json& claim : figure.at("claims")) {
    const std::string verdict = cell(claim, "verdict");
    fmt::print("  {}\n", wrapped_for_output(cell(claim, "claim"), width, 2));
    fmt::print("    paper: {}\n", cell(claim, "theirs"));
    fmt::print("    here:  {}\n", wrapped_for_output(cell(claim, "ours"), width, 11));
    if (!verdict.empty()) fmt::print("    {}\n", verdict);
    if (!cell(claim, "reason").empty())
      fmt::print("    why:   {}\n", wrapped_for_output(cell(claim, "reason"), width, 11));
  }
  fmt::print("{}: {} rows, {} pictures, {}\n\n", cell(figure, "page"), cell(figure, "rows"),
             figure.at("pictures").size(), time_text(figure.at("seconds").get<double>()));
}

// Fails if a bound did not hold, which is an error in Kintsugi: in the bound or in the product.
void require_bounds(const Json& result) {
  for (const Json& figure : result.at("figures")) {
    if (figure.at("bound_violations") == 0) continue;
    throw Finding(
        fmt::format("reproduce: {} rows are beyond their scheme's a-priori bound, the first in {}: {}",
                    cell(result, "bound_violations"), cell(figure, "name"), cell(figure, "first_violation")));
  }
}

std::string command_text(const ReproduceRequest& request) {
  std::string command = "kintsugi-lab reproduce";
  for (const auto& name : request.names) command += " " + name;
  command += " -o " + quoted(request.options.folder);
  if (!request.markdown.empty()) command += " --markdown " + quoted(request.markdown);
  return command + (request.options.quick ? " --quick" : "") +
         (request.options.recorded ? " --recorded" : "");
}

// True if the figure is left out: `all` is wanted, and there is no device for it. Fails if it is wanted by
// name.
bool left_out(const PaperFigure& figure, const ReproduceRequest& request) {
  if (!figure.analysis.needs_device || request.options.recorded) return false;
  const std::string reason = measure::device_missing_reason();
  if (reason.empty()) return false;
  const auto& names = request.names;
  if (std::find(names.begin(), names.end(), figure.name) != names.end())
    fail("FIGURE", "{} times products on a device, and there is none: {}", figure.name, reason);
  if (!request.json) fmt::print("{}: left out, since there is no device: {}\n\n", figure.name, reason);
  return true;
}

Json run_figures(const ReproduceRequest& request, const std::vector<const PaperFigure*>& figures) {
  Json result = document("reproduction");
  result["command"] = command_text(request);
  result["quick"] = request.options.quick;
  result["bound_violations"] = 0;
  result["figures"] = Json::array();
  for (const PaperFigure* figure : figures) {
    if (left_out(*figure, request)) continue;
    Json element = reproduce_figure(*figure, request.options);
    result["bound_violations"] =
        result.at("bound_violations").get<int>() + element.at("bound_violations").get<int>();
    if (!request.json) print_figure(element);
    result["figures"].push_back(std::move(element));
  }
  return result;
}

void run_reproduce(const ReproduceRequest& request) {
  require_settings();
  if (request.list) return print_list(request.json);
  if (request.names.empty()) fail("FIGURE", "is missing; kintsugi-lab reproduce --list shows all figures");
  if (request.options.folder.empty()) fail("-o", "a folder for the results is needed");
  if (request.options.quick && request.options.recorded)
    fail("--recorded", "runs nothing, so it cannot be combined with --quick, which runs small sizes");
  const auto figures = wanted_figures(request.names);
  require_png("reproduce");
  make_folder("-o", request.options.folder);
  if (!request.markdown.empty()) check_writable(request.markdown);
  const Json result = run_figures(request, figures);
  if (!request.markdown.empty()) write_text(request.markdown, markdown_of(result));
  if (request.json) print(result);
  require_bounds(result);
}

}  // namespace

void add_reproduce(CLI::App& program, Action& action) {
  auto request = std::make_shared<ReproduceRequest>();
  CLI::App* command = program.add_subcommand(
      "reproduce", "Reproduce figures of the papers and compare their claims with our results");
  command->footer(
      "Example:\n"
      "  kintsugi-lab reproduce h2sgemm-fig2 -o reproduced\n"
      "  kintsugi-lab reproduce all -o lab/results/papers --markdown lab/results/accuracy.md\n"
      "\n"
      "Each figure's results are FOLDER/FIGURE.json, FOLDER/FIGURE.html and pictures, SVG and PNG, in\n"
      "FOLDER/FIGURE. A second run continues the first. Verdicts follow from the criteria of\n"
      "lab/results/claims.json, which the program has with it. The exit status is 1 if an error is\n"
      "beyond its scheme's a-priori bound.");
  command->add_option("FIGURE", request->names, "Figures of --list, or all");
  command->add_option("-o,--output", request->options.folder, "Folder for the results");
  command->add_option("--markdown", request->markdown, "File for all claims and verdicts as Markdown");
  command->add_flag("--quick", request->options.quick, "Run small sizes to try it, without verdicts");
  command->add_flag("--recorded", request->options.recorded,
                    "Run nothing; judge and draw the results in the folder, whatever commit made them");
  command->add_flag("--list", request->list, "List the figures");
  command->add_flag("--json", request->json, "Print the results, or the list, as JSON");
  command->callback([request, &action] { action = [request] { run_reproduce(*request); }; });
}

}  // namespace kintsugi::tools
