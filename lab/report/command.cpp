// kintsugi-lab report: draws files of kintsugi-lab accuracy and kintsugi bench as one page with figures.
#include <algorithm>
#include <memory>

#include "lab/commands.hpp"
#include "lab/report/check.hpp"
#include "tools/io/atomic_file.hpp"
#include "tools/io/input_file.hpp"
#include "tools/report/page.hpp"
#include "tools/report/pictures.hpp"

namespace kintsugi::tools {

namespace {

struct ReportRequest {
  std::vector<std::string> files;
  std::string output;
  PictureFolders folders;
  bool json = false;
};

std::string joined_items(const Json& list) {
  std::string text;
  for (const Json& item : list) {
    if (!text.empty()) text += ',';
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

// Returns the command line that makes a file's rows.
std::string command_of(const std::string& command_name, const Json& document, const std::string& file) {
  std::string command = (command_name == "bench" ? "kintsugi " : "kintsugi-lab ") + command_name;
  for (const auto& [setting, value] : document.at("settings").items()) {
    std::string flag = " --" + setting;
    std::replace(flag.begin(), flag.end(), '_', '-');
    if (value == Json(false)) continue;
    if (setting != "candidates") command += flag;  // candidates are arguments without a flag
    if (!value.is_boolean()) command += " " + quoted(joined_items(value));
  }
  return command + " -o " + quoted(file);
}

Source read_results(const std::string& file) {
  InputFile input(file);
  Source source{.name = file, .document = parse_or_discard(input.read_rest()), .command = ""};
  if (!source.document.is_object()) fail(file, "is not a JSON object");
  const Json format = source.document.value("format", Json());
  const Json version = source.document.value("format_version", Json());
  const bool is_bench = format == "kintsugi.bench";
  if (!is_bench && format != "kintsugi.accuracy")
    fail(file,
         "its format is {}; kintsugi-lab report reads those of kintsugi-lab accuracy and kintsugi bench",
         format.dump());
  if (version != 1) fail(file, "its format_version is {}; this program reads 1", version.dump());
  if (is_bench) {
    check_bench(file, source.document);
  } else {
    check_accuracy(file, source.document);
  }
  source.command = command_of(is_bench ? "bench" : "accuracy", source.document, file);
  return source;
}

// Appends the source's rows in the form that make_figures() takes.
void add_rows(const Source& source, std::vector<Json>& rows) {
  const bool is_bench = source.document.at("format") == "kintsugi.bench";
  for (const Json& row : source.document.at("rows"))
    rows.push_back(is_bench ? rate_row(source.document, row) : row);
}

std::string title_of(const std::vector<Json>& rows) {
  if (std::none_of(rows.begin(), rows.end(), is_rate_row))
    return "Kintsugi: errors against the exact product";
  if (std::all_of(rows.begin(), rows.end(), is_rate_row)) return "Kintsugi: rates of products";
  return "Kintsugi: errors and rates";
}

Json report_document(const ReportRequest& request, std::size_t rows, std::size_t figures,
                     const std::vector<std::string>& pictures) {
  Json result = document("report-page");
  result["files"] = request.files;
  result["rows"] = rows;
  result["page"] = request.output;
  result["figures"] = figures;
  result["pictures"] = pictures;
  return result;
}

void run_report(const ReportRequest& request) {
  check_writable(request.output);
  if (is_standard_output(request.output) && request.json)
    fail("-o", "- is standard output, where --json writes too; give a file");
  if (!request.folders.png.empty()) require_png("--png");
  std::vector<Source> sources;
  std::vector<Json> rows;
  for (const auto& file : request.files) sources.push_back(read_results(file));
  for (const Source& source : sources) add_rows(source, rows);
  const std::vector<Figure> figures = make_figures(rows);
  const std::string page = report_page({.title = title_of(rows), .preface = ""}, sources, rows, figures);
  write_text(request.output, page);
  const auto pictures = write_pictures(request.folders, figures);
  if (is_standard_output(request.output)) return;
  if (request.json) return print(report_document(request, rows.size(), figures.size(), pictures));
  fmt::print("{}: {} rows, {} figures\n", request.output, rows.size(), figures.size());
  if (!pictures.empty()) fmt::print("{} pictures, the first: {}\n", pictures.size(), pictures.front());
}

}  // namespace

void add_report(CLI::App& program, Action& action) {
  auto request = std::make_shared<ReportRequest>();
  CLI::App* command = program.add_subcommand(
      "report", "Draw results of kintsugi-lab accuracy and bench: one page with figures and tables");
  command->footer(
      "Example:\n"
      "  kintsugi-lab report accuracy.json -o report.html --svg pictures --png pictures\n"
      "\n"
      "Figures: error and rate over k, m = n, m = n = k, or a parameter of the distribution or of the\n"
      "scheme, wherever there are two values or more; rooflines of devices; histograms. rsvg-convert\n"
      "(Debian: librsvg2-bin) draws the PNG files.");
  command->add_option("FILE", request->files, "Files of kintsugi-lab accuracy and kintsugi bench")
      ->required();
  command->add_option("-o,--output", request->output, "File for the page, HTML; - for standard output")
      ->required();
  command->add_option("--svg", request->folders.svg, "Folder for every figure as an SVG of its own");
  command->add_option("--png", request->folders.png, "Folder for every figure as a PNG of its own");
  command->add_flag("--json", request->json, "Print what was written as JSON");
  command->callback([request, &action] { action = [request] { run_report(*request); }; });
}

}  // namespace kintsugi::tools
