// kintsugi-lab reproduce: reproduces figures of the papers and compares their claims with measurements.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "lab/accuracy/run.hpp"
#include "lab/commands.hpp"
#include "lab/reproduce/figures.hpp"
#include "tools/io/atomic_file.hpp"
#include "tools/io/input_file.hpp"
#include "tools/measure/machine/device.hpp"
#include "tools/measure/nearest_name.hpp"
#include "tools/report/page.hpp"
#include "tools/report/pictures.hpp"

namespace kintsugi::tools {

namespace {

struct ReproduceOptions {
  std::string folder;
  bool quick = false;  // true: m and n are scaled down to 32, and k to 256; there is one seed and no verdict
  bool full = false;   // true: all shapes and seeds
  bool recorded = false;  // true: nothing runs; rows are read from the folder, whatever commit made them
};

// ------------------------------------------------------------- one figure

std::string command_of(const PaperFigure& figure, const ReproduceOptions& options) {
  // Recorded rows are those of full runs.
  const char* sizes = options.quick ? " --quick" : options.full || options.recorded ? " --full" : "";
  return fmt::format("kintsugi-lab reproduce {} -o {}{}", figure.name, quoted(options.folder), sizes);
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

constexpr double reduced_products = 1 << 26;  // most multiplications m n k of a shape without --full

double products(const std::string& shape_text) {
  const Shape shape = parse_shape(shape_text);
  return static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
}

// Returns the number of multiplications of the sweep's smallest shape; 0 if it has no shapes.
double fewest_products(const SweepTexts& lists) {
  double fewest = 0;
  for (const auto& [name, words] : lists) {
    if (name != "shapes") continue;
    for (const auto& text : words) fewest = fewest == 0 ? products(text) : std::min(fewest, products(text));
  }
  return fewest;
}

// Returns the lists of a sweep without --full: the first seed, and the shapes with few multiplications, at
// least the one with the fewest. Their rows are among those of --full, which continues the file.
SweepTexts reduced_lists(SweepTexts lists) {
  const double limit = std::max(reduced_products, fewest_products(lists));
  for (auto& [name, words] : lists) {
    if (name == "seeds") words.resize(1);
    if (name == "shapes")
      std::erase_if(words, [&](const std::string& text) { return products(text) > limit; });
  }
  return lists;
}

// Returns the figure's sweeps that run without --full: those with a shape of few multiplications; all if none
// has one.
std::vector<PaperSweep> reduced_sweeps(const PaperFigure& figure) {
  std::vector<PaperSweep> sweeps;
  for (const PaperSweep& sweep : figure.sweeps)
    if (fewest_products(sweep.lists) <= reduced_products) sweeps.push_back(sweep);
  if (sweeps.empty()) sweeps = figure.sweeps;
  for (PaperSweep& sweep : sweeps) sweep.lists = reduced_lists(sweep.lists);
  return sweeps;
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

// Returns the name of the file of a figure's sweep or analysis.
std::string name_of(const PaperFigure& figure, const std::string& part) {
  return figure.name + (part.empty() ? "" : "-" + part);
}

Results run_sweeps(const PaperFigure& figure, const ReproduceOptions& options) {
  Results measured;
  const bool reduced = !options.quick && !options.full && !options.recorded;
  for (const PaperSweep& sweep : reduced ? reduced_sweeps(figure) : figure.sweeps) {
    const std::string name = name_of(figure, sweep.name);
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
  const std::string file = options.folder + "/" + name_of(figure, figure.analysis.name) + ".json";
  if (options.recorded && figure.analysis.takes_long && !std::filesystem::exists(file))
    return;  // not run yet
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

std::string claims_section(const Json& claims) {
  if (claims.empty()) return "";
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

// Runs the sweeps of a figure and writes NAME.json (NAME-SWEEP.json), NAME.html and pictures into the folder.
// Existing sweeps are continued. With `recorded`, writes only pages and pictures. Returns an element of
// "figures" of lab/schema/reproduction.schema.json.
Json reproduce_figure(const PaperFigure& figure, const ReproduceOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Results measured;
  if (!figure.sweeps.empty()) measured = run_sweeps(figure, options);
  if (figure.analysis.make_document) add_analysis(measured, figure, options);
  const Evidence evidence(rows_with_commits(measured.sources));
  Json claims = Json::array();
  for (const Claim& claim : figure.claims) claims.push_back(claim_document(claim, evidence, options.quick));
  const bool reduced = !options.quick && !options.full && !options.recorded && !figure.sweeps.empty();
  const std::string conditions =
      (options.quick ? "cut down by --quick (sizes, samples, one seed); in full: "
       : reduced     ? "without --full: one seed, shapes of at most 2^26 multiplications; in full: "
                     : "") +
      figure.conditions + device_text(measured.sources);
  const std::string preface =
      "<p>" + escaped(fmt::format("{}, {}. Conditions: {}.", figure.paper, figure.place, conditions)) +
      "</p>\n" + claims_section(claims);
  const std::string page = options.folder + "/" + figure.name + ".html";
  write_text(page, report_page({figure.name + ": " + figure.subject, preface}, measured.sources,
                               measured.rows, measured.figures));
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

// ---------------------------------------------------------- accuracy.md

std::string escaped_cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_') result += '\\';
    if (c == '<') {
      result += "&lt;";
    } else {
      result += c;
    }
  }
  return result;
}

// Returns a paragraph in lines of 120 characters.
std::string paragraph(const std::string& text) { return wrapped(text, 120, 0) + "\n\n"; }

bool is_counted(const Json& claim) { return claim.at("kind") == "paper"; }

int count_of(const Json& document, const std::string& verdict) {
  int count = 0;
  for (const Json& figure : document.at("figures")) {
    for (const Json& claim : figure.at("claims"))
      count += is_counted(claim) && cell(claim, "verdict") == verdict ? 1 : 0;
  }
  return count;
}

std::string summary_of(const Json& document) {
  if (document.at("quick").get<bool>()) return "Small sizes, no verdicts (--quick)";
  return fmt::format(
      "Of the papers' claims {} agree and {} disagree; {} are predicted, {} hold on another chip, {} cannot be "
      "decided here and {} were not measured",
      count_of(document, "agrees"), count_of(document, "disagrees"), count_of(document, "predicted"),
      count_of(document, "holds on another chip"), count_of(document, "cannot be decided here"),
      count_of(document, "not measured"));
}

std::string head_of(const Json& document) {
  const Json& machine = document.at("machine");
  std::string text = "# The papers' claims on accuracy, and what came out here\n\n";
  text += paragraph(
      fmt::format("Made by `{}`; not to be edited by hand. Kintsugi {}, commit {}; {}, {} threads, {}.",
                  cell(document, "command"), cell(document, "version"), cell(document, "commit"),
                  cell(machine, "processor"), cell(machine, "threads"), cell(machine, "system")));
  text += paragraph(fmt::format(
      "{}. Verdicts follow from the values and the criteria of claims.json; claims.md has all claims, "
      "those that nobody measured among them. Our own claims and those that are true by construction are "
      "marked and not counted. Errors are against the exact product where nothing else is said; {} rows "
      "lie beyond their scheme's a-priori bound. The words are those of docs/TERMS.md, the schemes those "
      "of docs/schemes. The command also writes a page with pictures for each figure, FIGURE.html, beside "
      "the figure's data, which the repository keeps packed in lab/results/papers.",
      summary_of(document), cell(document, "bound_violations")));
  return text;
}

std::string claims_table(const Json& claims) {
  if (claims.empty()) return "";
  std::string text = "| claim | | paper | here | verdict |\n|---|---|---|---|---|\n";
  for (const Json& claim : claims) {
    const std::string verdict = cell(claim, "verdict");
    const std::string kind = is_counted(claim) ? "" : " (" + cell(claim, "kind") + ")";
    text += fmt::format("| `{}` | {}{} | {} | {} | {} |\n", cell(claim, "id"),
                        escaped_cell(cell(claim, "claim")), kind, escaped_cell(cell(claim, "theirs")),
                        escaped_cell(cell(claim, "ours")), verdict.empty() ? "-" : "**" + verdict + "**");
  }
  return text + "\n";
}

// Returns the reasons of the verdicts as a list. Claims with the same reason share a line.
std::string reasons(const Json& claims) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const Json& claim : claims) {
    const std::string reason = cell(claim, "reason");
    if (reason.empty()) continue;
    const std::string name = "`" + cell(claim, "id") + "`";
    const auto same_reason =
        std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == reason; });
    if (same_reason == lines.end()) {
      lines.emplace_back(reason, name);
    } else {
      same_reason->second += ", " + name;
    }
  }
  std::string text;
  for (const auto& [reason, names] : lines)
    text += wrapped("- " + names + ": " + escaped_cell(reason), 120, 2) + "\n";
  return text.empty() ? "" : text + "\n";
}

std::string data_of(const Json& figure) {
  std::vector<std::string> data;
  for (const Json& name : figure.at("data"))
    data.push_back("`" + std::filesystem::path(name.get<std::string>()).filename().string() + "`");
  std::set<std::string> commits;
  for (const Json& commit : figure.at("commits")) commits.insert(commit.get<std::string>());
  return fmt::format("{}; {} rows of commit {}: `{}`\n\n", fmt::join(data, ", "), cell(figure, "rows"),
                     fmt::join(commits, ", "), cell(figure, "command"));
}

// Returns lab/results/accuracy.md, every claim with our value and our verdict, for a document of
// lab/schema/reproduction.schema.json.
std::string markdown_of(const Json& document) {
  std::string text = head_of(document);
  for (const Json& figure : document.at("figures")) {
    text += fmt::format("## {}: {}\n\n", cell(figure, "name"), cell(figure, "subject"));
    text += paragraph(fmt::format("{}, {}. Conditions: {}.", cell(figure, "paper"), cell(figure, "place"),
                                  escaped_cell(cell(figure, "conditions"))));
    text += claims_table(figure.at("claims")) + reasons(figure.at("claims")) + data_of(figure);
  }
  text.pop_back();  // one newline at the end
  return text;
}

// ---------------------------------------------------------------- command

struct ReproduceRequest {
  std::vector<std::string> names;
  std::string markdown;
  ReproduceOptions options;
  bool list = false;
  bool json = false;
};

std::vector<const PaperFigure*> wanted_figures(const std::vector<std::string>& names) {
  const std::string all = "all";
  std::vector<const PaperFigure*> wanted;
  std::vector<std::string> known{all};
  for (const PaperFigure& figure : paper_figures()) {
    known.push_back(figure.name);
    if (contains(names, all) || contains(names, figure.name)) wanted.push_back(&figure);
  }
  for (const auto& name : names) {
    if (!contains(known, name))
      fail("FIGURE", "\"{}\" is not known{}", name, measure::accepted_names(name, "accepted:", known));
  }
  return wanted;
}

void print_list(bool json) {
  Json result = document("reproduction-list");
  result["figures"] = Json::array();
  Table table({"figure", "paper", "place", "claims", "subject"});
  for (const PaperFigure& figure : paper_figures()) {
    result["figures"].push_back({{"name", figure.name},
                                 {"paper", figure.paper},
                                 {"place", figure.place},
                                 {"subject", figure.subject},
                                 {"claims", figure.claims.size()}});
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
  return command + (request.options.quick ? " --quick" : "") + (request.options.full ? " --full" : "") +
         (request.options.recorded ? " --recorded" : "");
}

// True if the figure is left out: `all` is wanted, and there is no device for it, or it takes long and --full
// is missing. Fails if it is wanted by name and there is no device.
bool left_out(const PaperFigure& figure, const ReproduceRequest& request) {
  const ReproduceOptions& options = request.options;
  if (figure.analysis.takes_long && !contains(request.names, figure.name) && !options.quick &&
      !options.full && !options.recorded) {
    if (!request.json) fmt::print("{}: left out, since it takes long: see --full\n\n", figure.name);
    return true;
  }
  if (!figure.analysis.needs_device || request.options.recorded) return false;
  const std::string reason = measure::device_missing_reason();
  if (reason.empty()) return false;
  if (contains(request.names, figure.name))
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
  refuse_settings({"scheme", "policy", "accuracy", "engine", "accumulator"}, "the figures name what runs");
  if (request.names.empty()) fail("FIGURE", "is missing; kintsugi-lab reproduce --list shows all figures");
  if (request.options.folder.empty()) fail("-o", "a folder for the results is needed");
  if (request.options.quick && request.options.recorded)
    fail("--recorded", "runs nothing, so it cannot be combined with --quick, which runs small sizes");
  if (request.options.full && (request.options.quick || request.options.recorded))
    fail("--full", "runs all sizes, so it cannot be combined with --quick or --recorded");
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
      "  kintsugi-lab reproduce all --full -o lab/results/papers --markdown lab/results/accuracy.md\n"
      "\n"
      "Without --full sweeps have one seed and no shapes of more than 2^26 multiplications, and verdicts are\n"
      "those of these sizes. A run with --full continues one without.\n"
      "Each figure's results are FOLDER/FIGURE.json, FOLDER/FIGURE.html and pictures, SVG and PNG, in\n"
      "FOLDER/FIGURE. A second run continues the first. Verdicts follow from the criteria of\n"
      "lab/results/claims.json, which the program has with it. The exit status is 1 if an error is\n"
      "beyond its scheme's a-priori bound.");
  auto* figures = command->add_option("FIGURE", request->names, "Figures of --list, or all");
  auto* folder = command->add_option("-o,--output", request->options.folder, "Folder for the results");
  auto* markdown =
      command->add_option("--markdown", request->markdown, "File for all claims and verdicts as Markdown");
  auto* quick =
      command->add_flag("--quick", request->options.quick, "Run small sizes to try it, without verdicts");
  auto* full = command->add_flag("--full", request->options.full, "Run all shapes and seeds");
  auto* recorded =
      command->add_flag("--recorded", request->options.recorded,
                        "Run nothing; judge and draw the results in the folder, whatever commit made them");
  auto* list = command->add_flag("--list", request->list, "List the figures");
  for (CLI::Option* option : {figures, folder, markdown, quick, full, recorded}) list->excludes(option);
  command->add_flag("--json", request->json, "Print the results, or the list, as JSON");
  command->callback([request, &action] { action = [request] { run_reproduce(*request); }; });
}

}  // namespace kintsugi::tools
