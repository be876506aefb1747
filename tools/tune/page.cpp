#include "tune/page.hpp"

#include <algorithm>

#include "report/page.hpp"
#include "tune/document.hpp"

namespace kintsugi::tools {

namespace {

std::string row_of(const char* tag, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (const std::string& text : cells) html += fmt::format("<{0}>{1}</{0}>", tag, escaped(text));
  return html + "</tr>\n";
}

template <class Cells>
std::string table_of(const std::string& title, const std::vector<std::string>& heads, std::size_t count,
                     const Cells& cells) {
  std::string html = "<h2>" + title + "</h2>\n<div class=\"wide\"><table>\n<thead>" + row_of("th", heads) +
                     "</thead>\n<tbody>\n";
  for (std::size_t i = 0; i < count; ++i) html += row_of("td", cells(i));
  return html + "</tbody>\n</table></div>\n";
}

// ---------------------------------------------------------------- graph

// The graph has one box a site, from top to bottom. An arc leads from each site to every site that reads its
// results: on the right side if it leads downwards, on the left side if it leads upwards.
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

std::string arc(std::size_t from, std::size_t to) {
  const bool is_down = from < to;
  const double distance = std::min(130.0, 30 + 25 * std::abs(middle(from) - middle(to)) / box_pitch);
  const double x = is_down ? box_left + box_width : box_left;
  const double reach = is_down ? x + distance : x - distance;
  const double begin = middle(from) + (is_down ? 6 : -6), end = middle(to) + (is_down ? -6 : 6);
  return fmt::format(
      "<path d=\"M {0} {1} C {2} {1}, {2} {3}, {0} {3}\" fill=\"none\" stroke=\"currentColor\" "
      "marker-end=\"url(#head)\"/>\n",
      x, begin, reach, end);
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
    for (const std::size_t from : tuning.problem.predecessors[to])
      if (from != to) svg += arc(from, to);
  }
  return svg + "</svg>\n";
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
  html += "</ul>\n";
  html += table_of("Call sites and their levels", site_heads(request), tuning.sites.size(),
                   [&](std::size_t i) { return site_cells(request, tuning, i); });
  html += graph(tuning);
  html += table_of("Every step of the search", step_heads(request), tuning.result.steps.size(),
                   [&](std::size_t i) { return step_cells(request, tuning, i); });
  if (tuning.validations.empty()) return html;
  return html + table_of("Inputs of other seeds", {"seed", "error", "limit"}, tuning.validations.size(),
                         [&](std::size_t i) -> std::vector<std::string> {
                           const Validation& one = tuning.validations[i];
                           return {std::to_string(one.seed), fmt::format("{:.3g}", one.error),
                                   one.held ? "held" : "NOT held"};
                         });
}

}  // namespace

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

}  // namespace kintsugi::tools
