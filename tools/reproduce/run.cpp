#include "reproduce/run.hpp"

#include <algorithm>
#include <chrono>

#include "accuracy/run.hpp"
#include "report/page.hpp"
#include "report/pictures.hpp"

namespace kintsugi::tools {

namespace {

std::string command_of(const PaperFigure& figure, const ReproduceOptions& options) {
  return fmt::format("kintsugi reproduce {} -o {}{}", figure.name, options.folder,
                     options.quick ? " --quick" : "");
}

std::string capped(const std::string& size, std::int64_t most) {
  return std::to_string(std::min<std::int64_t>(std::stoll(size), most));
}

std::string capped_shape(const std::string& shape) {
  const auto first = shape.find('x');
  const auto second = shape.find('x', first + 1);
  return capped(shape.substr(0, first), 32) + "x" + capped(shape.substr(first + 1, second - first - 1), 32) +
         "x" + capped(shape.substr(second + 1), 256);
}

// Equal sizes become one, as everywhere in a sweep.
SweepTexts quick_lists(SweepTexts lists) {
  for (auto& [name, words] : lists) {
    if (name == "seeds") words.resize(1);
    for (std::string& word : words) {
      if (name == "m" || name == "n") word = capped(word, 32);
      if (name == "k") word = capped(word, 256);
      if (name == "shapes") word = capped_shape(word);
    }
  }
  return lists;
}

// What a figure's sweeps have left behind.
struct Measured {
  std::vector<Source> sources;
  std::vector<Json> rows;
  std::vector<Figure> figures;
  int refused = 0;
  int bound_violations = 0;
  std::string first_violation;
};

Measured run_sweeps(const PaperFigure& figure, const ReproduceOptions& options) {
  Measured measured;
  for (const PaperSweep& sweep : figure.sweeps) {
    const std::string name = figure.name + (sweep.name.empty() ? "" : "-" + sweep.name);
    const std::string file = options.folder + "/" + name + ".json";
    const SweepTexts lists = options.quick ? quick_lists(sweep.lists) : sweep.lists;
    SweepOutcome outcome = run_sweep(make_sweep(lists), file, name);
    for (const Json& row : outcome.document.at("rows")) measured.rows.push_back(row);
    measured.refused += outcome.refused;
    if (measured.bound_violations == 0) measured.first_violation = outcome.first_violation;
    measured.bound_violations += outcome.bound_violations;
    measured.sources.push_back({file, std::move(outcome.document), command_of(figure, options)});
  }
  measured.figures = make_figures(measured.rows, figure.drawn);
  return measured;
}

Measured run_analysis(const PaperFigure& figure, const ReproduceOptions& options) {
  Measured measured;
  const std::string file = options.folder + "/" + figure.name + ".json";
  const Json document = figure.analysis.document(options.quick);
  write_text(file, document.dump(1) + "\n");
  for (const Json& row : document.at("rows")) measured.rows.push_back(row);
  measured.figures = figure.analysis.draw(document);
  measured.sources.push_back({file, document, command_of(figure, options)});
  return measured;
}

// Sizes of --quick are not those that a claim speaks of, so there is no verdict on them.
Json judged(const Claim& claim, const Evidence& evidence, bool quick) {
  const Answer answer = claim.judge(evidence);
  return {{"claim", claim.text},
          {"theirs", claim.theirs},
          {"ours", answer.ours},
          {"verdict", quick ? Json() : Json(verdict_text(answer.verdict))},
          {"reason", quick ? "" : answer.reason}};
}

std::string claims_section(const Json& claims) {
  std::string html = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const char* head : {"claim", "paper", "here", "verdict", "why"})
    html += fmt::format("<th>{}</th>", head);
  html += "</tr></thead>\n<tbody>\n";
  for (const Json& claim : claims) {
    html += "<tr>";
    for (const char* name : {"claim", "theirs", "ours", "verdict", "reason"})
      html += "<td class=\"prose\">" + escaped(cell(claim, name)) + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string preface_of(const PaperFigure& figure, const Json& claims) {
  return "<p>" +
         escaped(fmt::format("{}, {}. Conditions: {}.", figure.paper, figure.place, figure.conditions)) +
         "</p>\n" + claims_section(claims);
}

}  // namespace

Json reproduce_figure(const PaperFigure& figure, const ReproduceOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Measured measured =
      figure.sweeps.empty() ? run_analysis(figure, options) : run_sweeps(figure, options);
  const Evidence evidence(measured.rows);
  Json claims = Json::array();
  for (const Claim& claim : figure.claims) claims.push_back(judged(claim, evidence, options.quick));
  const std::string page = options.folder + "/" + figure.name + ".html";
  const bool has_table = !figure.sweeps.empty();
  write_text(page,
             report_page({figure.name + ": " + figure.subject, preface_of(figure, claims)}, measured.sources,
                         has_table ? measured.rows : std::vector<Json>{}, measured.figures));
  const std::string pictures = options.folder + "/" + figure.name;
  Json data = Json::array();
  for (const Source& source : measured.sources) data.push_back(source.name);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {{"name", figure.name},
          {"paper", figure.paper},
          {"place", figure.place},
          {"subject", figure.subject},
          {"conditions", figure.conditions},
          {"command", command_of(figure, options)},
          {"data", data},
          {"page", page},
          {"pictures", write_pictures({pictures, pictures}, measured.figures)},
          {"rows", measured.rows.size()},
          {"refused", measured.refused},
          {"bound_violations", measured.bound_violations},
          {"first_violation", measured.first_violation},
          {"seconds", seconds.count()},
          {"claims", claims}};
}

}  // namespace kintsugi::tools
