// kintsugi report: files of kintsugi accuracy as one page with figures.
#include <memory>

#include "commands.hpp"
#include "io/atomic_file.hpp"
#include "io/input_file.hpp"
#include "report/check.hpp"
#include "report/page.hpp"
#include "report/pictures.hpp"
#include "report/png.hpp"

namespace kintsugi::tools {

namespace {

struct ReportRequest {
  std::vector<std::string> files;
  std::string output;
  PictureFolders folders;
  bool json = false;
};

std::string joined(const Json& list) {
  std::string text;
  for (const Json& item : list) {
    if (!text.empty()) text += ',';
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return text;
}

// The command that makes a file's rows.
std::string command_of(const Json& document, const std::string& name) {
  std::string command = "kintsugi accuracy";
  for (const auto& [setting, value] : document.at("settings").items()) {
    const std::string flag = setting == "max_entries" ? "max-entries" : setting;
    if (value == Json(false)) continue;
    command += " --" + flag;
    if (!value.is_boolean()) command += " " + quoted(joined(value));
  }
  return command + " -o " + quoted(name);
}

Source read_accuracy(const std::string& name) {
  InputFile input(name);
  Source file{name, Json::parse(input.read_rest(), nullptr, false), ""};
  if (!file.document.is_object()) fail(name, "is not a JSON object");
  const Json format = file.document.value("format", Json());
  const Json version = file.document.value("format_version", Json());
  if (format != "kintsugi.accuracy")
    fail(name, "its format is {}; kintsugi report reads those of kintsugi accuracy", format.dump());
  if (version != 1) fail(name, "its format_version is {}; this program reads 1", version.dump());
  check_accuracy(name, file.document);
  file.command = command_of(file.document, name);
  return file;
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
  if (!request.folders.png.empty()) require_png("--png");
  std::vector<Source> files;
  std::vector<Json> rows;
  for (const auto& name : request.files) files.push_back(read_accuracy(name));
  for (const Source& file : files) {
    for (const Json& row : file.document.at("rows")) rows.push_back(row);
  }
  const std::vector<Figure> figures = make_figures(rows);
  const std::string page =
      report_page({"Kintsugi: errors against the exact product", ""}, files, rows, figures);
  write_text(request.output, page);
  const auto pictures = write_pictures(request.folders, figures);
  if (request.json) return print(report_document(request, rows.size(), figures.size(), pictures));
  fmt::print("{}: {} rows, {} figures\n", request.output, rows.size(), figures.size());
  if (!pictures.empty()) fmt::print("{} pictures, the first: {}\n", pictures.size(), pictures.front());
}

}  // namespace

void add_report(CLI::App& program, Action& action) {
  auto request = std::make_shared<ReportRequest>();
  CLI::App* command = program.add_subcommand(
      "report", "Draw results of kintsugi accuracy: one page with figures and a table");
  command->footer(
      "Example:\n"
      "  kintsugi report accuracy.json -o report.html --svg pictures --png pictures\n"
      "\n"
      "Figures: error against k, m = n, m = n = k, a parameter of the distribution or of the scheme, "
      "wherever\n"
      "there are two values or more; histograms. PNG is drawn by rsvg-convert (Debian: librsvg2-bin).");
  command->add_option("FILE", request->files, "Files of kintsugi accuracy")->required();
  command->add_option("-o,--output", request->output, "File for the page, HTML")->required();
  command->add_option("--svg", request->folders.svg, "Folder for every figure as an SVG of its own");
  command->add_option("--png", request->folders.png, "Folder for every figure as a PNG of its own");
  command->add_flag("--json", request->json, "Print what was written as JSON");
  command->callback([request, &action] { action = [request] { run_report(*request); }; });
}

}  // namespace kintsugi::tools
