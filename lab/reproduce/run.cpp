#include "lab/reproduce/run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "lab/accuracy/results.hpp"
#include "lab/accuracy/run.hpp"
#include "tools/io/input_file.hpp"
#include "tools/report/page.hpp"
#include "tools/report/pictures.hpp"

namespace kintsugi::tools {

namespace {

std::string command_of(const PaperFigure& figure, const ReproduceOptions& options) {
  return fmt::format("kintsugi-lab reproduce {} -o {}{}", figure.name, quoted(options.folder),
                     options.quick ? " --quick" : "");
}

constexpr double quick_rows = 32;     // largest m, and n, with --quick
constexpr double quick_length = 256;  // largest k with --quick

std::string scaled_down(double size, double factor) {
  return fmt::format("{:.0f}", std::ceil(size / std::max(factor, 1.0)));
}

void scale_sizes(std::vector<std::string>& sizes, double max_size) {
  double largest = 0;
  for (const auto& size : sizes) largest = std::max(largest, std::stod(size));
  for (std::string& size : sizes) size = scaled_down(std::stod(size), largest / max_size);
}

// Divides all sizes by the same factor, so that squares stay squares.
void scale_shapes(std::vector<std::string>& shapes) {
  double factor = 1;
  for (const auto& text : shapes) {
    const Shape shape = parse_shape(text);
    factor = std::max({factor, static_cast<double>(std::max(shape.m, shape.n)) / quick_rows,
                       static_cast<double>(shape.k) / quick_length});
  }
  for (std::string& text : shapes) {
    const Shape shape = parse_shape(text);
    text = scaled_down(static_cast<double>(shape.m), factor) + "x" +
           scaled_down(static_cast<double>(shape.n), factor) + "x" +
           scaled_down(static_cast<double>(shape.k), factor);
  }
}

// Returns the lists of a sweep for --quick. Sizes keep their proportions, so that an axis of a chart has
// nearly as many values as in a full run.
SweepTexts quick_lists(SweepTexts lists) {
  for (auto& [name, words] : lists) {
    if (name == "seeds") words.resize(1);
    if (name == "m" || name == "n") scale_sizes(words, quick_rows);
    if (name == "k") scale_sizes(words, quick_length);
    if (name == "shapes") scale_shapes(words);
  }
  return lists;
}

// Results of a figure's sweeps and of its analysis.
struct Results {
  std::vector<Source> sources;
  std::vector<Json> rows;         // rows of the sweeps
  std::size_t analysis_rows = 0;  // number of rows of the analysis
  std::vector<Figure> figures;
  int refused = 0;  // number of rows left out, since their scheme refuses their operands
  int bound_violations = 0;
  std::string first_violation;
};

Results run_sweeps(const PaperFigure& figure, const ReproduceOptions& options) {
  Results measured;
  for (const PaperSweep& sweep : figure.sweeps) {
    const std::string name = figure.name + (sweep.name.empty() ? "" : "-" + sweep.name);
    const std::string file = options.folder + "/" + name + ".json";
    const SweepTexts lists = options.quick ? quick_lists(sweep.lists) : sweep.lists;
    SweepOutcome outcome = options.recorded ? recorded_sweep(file) : run_sweep(make_sweep(lists), file, name);
    for (const Json& row : outcome.document.at("rows")) measured.rows.push_back(row);
    measured.refused += outcome.refused;
    if (measured.bound_violations == 0) measured.first_violation = outcome.first_violation;
    measured.bound_violations += outcome.bound_violations;
    measured.sources.push_back({file, std::move(outcome.document), command_of(figure, options)});
  }
  measured.figures = make_figures(measured.rows, figure.drawn);
  return measured;
}

// Fails if a document of --quick would overwrite a document of a full run, or the reverse. Their "samples"
// differ. (run_sweep() detects this by the rows of its file.)
void require_same_samples(const std::string& file, const Json& document) {
  if (!std::filesystem::exists(file)) return;
  InputFile input(file);
  const Json old = parse_or_discard(input.read_rest());
  const Json samples = old.is_object() ? old.value("samples", Json()) : Json();
  if (samples != document.at("samples"))
    fail(file, "exists with {} samples, but this run has {}; choose another -o, or remove the file",
         samples.is_null() ? "no" : samples.dump(), document.at("samples").dump());
}

void add_analysis(Results& measured, const PaperFigure& figure, const ReproduceOptions& options) {
  const std::string suffix = figure.analysis.name.empty() ? "" : "-" + figure.analysis.name;
  const std::string file = options.folder + "/" + figure.name + suffix + ".json";
  const Json document = options.recorded ? recorded_document(file, figure.analysis.format)
                                         : figure.analysis.make_document(options.quick);
  if (!options.recorded) {
    require_same_samples(file, document);
    // Many rows in addition to those of sweeps are written like a sweep's, one on a line.
    write_text(file, figure.sweeps.empty() ? document.dump(1) + "\n" : results_text(document));
  }
  measured.analysis_rows = document.at("rows").size();
  if (figure.analysis.draw) measured.figures = figure.analysis.draw(document);
  measured.sources.push_back({file, document, command_of(figure, options)});
}

Results results_of(const PaperFigure& figure, const ReproduceOptions& options) {
  Results measured;
  if (!figure.sweeps.empty()) measured = run_sweeps(figure, options);
  if (figure.analysis.make_document) add_analysis(measured, figure, options);
  return measured;
}

Json measured_document(const Measured& measured) {
  Json result = Json::array();
  for (const SeriesValues& series : measured) {
    Json values = Json::array();
    for (const double value : series.values) values.push_back(number(value));
    result.push_back({{"series", series.name}, {"values", values}});
  }
  return result;
}

// Returns a claim's values, and its verdict unless --quick has reduced the sizes of the claim.
Json claim_document(const Claim& claim, const Evidence& evidence, bool quick) {
  const Json& registered = registered_claim(claim.id);
  Measured measured;
  std::string missing_row;
  try {
    measured = claim.measure(evidence);
  } catch (const NoSuchRow& error) {
    missing_row = error.what();
  }
  Json result = {{"id", claim.id},
                 {"kind", registered.at("kind")},
                 {"claim", registered.at("claim")},
                 {"theirs", registered.at("stated")},
                 {"ours", measured_text(measured)},
                 {"measured", measured_document(measured)},
                 {"verdict", nullptr},
                 {"reason", ""}};
  if (quick) return result;
  const Judgement judgement = judge(registered, measured);
  result["verdict"] = judgement.verdict;
  result["reason"] = judgement.why;
  if (!missing_row.empty()) {
    result["reason"] = judgement.why + " (" + missing_row + ")";
  } else if (judgement.verdict != "agrees" && !claim.explanation.empty()) {
    result["reason"] = judgement.why + " " + claim.explanation;
  }
  return result;
}

// Returns the rows of all documents, each with its document's commit, by which claims may filter.
std::vector<Json> rows_with_commits(const std::vector<Source>& sources) {
  std::vector<Json> rows;
  for (const Source& source : sources) {
    for (Json row : source.document.at("rows")) {
      row["commit"] = source.document.at("commit");
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

// Names the device on which the figure's documents were measured, if there is one.
std::string device_text(const std::vector<Source>& sources) {
  for (const Source& source : sources) {
    const Json device = source.document.value("device", Json());
    if (device.is_object()) return "; measured on an " + cell(device, "name");
  }
  return "";
}

std::string conditions_of(const PaperFigure& figure, const std::vector<Source>& sources, bool quick) {
  return (quick ? "cut down by --quick (sizes, samples, one seed); in full: " : "") + figure.conditions +
         device_text(sources);
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

std::string preface_of(const PaperFigure& figure, const std::string& conditions, const Json& claims) {
  return "<p>" + escaped(fmt::format("{}, {}. Conditions: {}.", figure.paper, figure.place, conditions)) +
         "</p>\n" + claims_section(claims);
}

}  // namespace

Json reproduce_figure(const PaperFigure& figure, const ReproduceOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Results measured = results_of(figure, options);
  const Evidence evidence(rows_with_commits(measured.sources));
  Json claims = Json::array();
  for (const Claim& claim : figure.claims) claims.push_back(claim_document(claim, evidence, options.quick));
  const std::string conditions = conditions_of(figure, measured.sources, options.quick);
  const std::string page = options.folder + "/" + figure.name + ".html";
  write_text(page, report_page({figure.name + ": " + figure.subject, preface_of(figure, conditions, claims)},
                               measured.sources, measured.rows, measured.figures));
  const std::string pictures = options.folder + "/" + figure.name;
  Json data = Json::array();
  Json commits = Json::array();
  for (const Source& source : measured.sources) {
    data.push_back(source.name);
    commits.push_back(source.document.at("commit"));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {{"name", figure.name},
          {"paper", figure.paper},
          {"place", figure.place},
          {"subject", figure.subject},
          {"conditions", conditions},
          {"command", command_of(figure, options)},
          {"data", data},
          {"commits", commits},
          {"page", page},
          {"pictures", write_pictures({.svg = pictures, .png = pictures}, measured.figures)},
          {"rows", measured.rows.size() + measured.analysis_rows},
          {"refused", measured.refused},
          {"bound_violations", measured.bound_violations},
          {"first_violation", measured.first_violation},
          {"seconds", seconds.count()},
          {"claims", claims}};
}

}  // namespace kintsugi::tools
