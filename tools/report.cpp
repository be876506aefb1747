// kintsugi report: files of kintsugi accuracy as one page with figures.
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "io/atomic_file.hpp"
#include "io/input_file.hpp"
#include "report/page.hpp"

namespace kintsugi::tools {

namespace {

struct ReportRequest {
  std::vector<std::string> files;
  std::string output;
  std::string svg_folder;
};

AccuracyFile read_accuracy(const std::string& name) {
  InputFile input(name);
  AccuracyFile file{name, Json::parse(input.read_rest(), nullptr, false)};
  if (!file.document.is_object()) fail(name, "is not a JSON object");
  const Json format = file.document.value("format", Json());
  const Json version = file.document.value("format_version", Json());
  if (format != "kintsugi.accuracy")
    fail(name, "its format is {}; kintsugi report reads those of kintsugi accuracy", format.dump());
  if (version != 1) fail(name, "its format_version is {}; this program reads 1", version.dump());
  return file;
}

void write_text(const std::string& name, const std::string& text) {
  AtomicFile file(name);
  file.write(text.data(), text.size());
  file.commit();
}

// "uniform, m = 32" is uniform-m-32.
std::string file_name(const std::string& title) {
  std::string name;
  for (const char c : title) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
    if (plain) {
      name += c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name;
}

int write_pictures(const std::string& folder, const std::vector<Figure>& figures) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) fail("--svg", "{}: {}", folder, error.message());
  int count = 0;
  for (const Figure& figure : figures) {
    for (std::size_t i = 0; i < figure.charts.size(); ++i, ++count) {
      const std::string name = file_name(figure.title) + "-" + file_name(measures[i].member) + ".svg";
      write_text(folder + "/" + name, draw(figure.charts[i], chart_style()));
    }
  }
  return count;
}

void run_report(const ReportRequest& request) {
  check_writable(request.output);
  std::vector<AccuracyFile> files;
  std::vector<Json> rows;
  for (const auto& name : request.files) files.push_back(read_accuracy(name));
  std::string page;
  std::vector<Figure> figures;
  try {
    for (const AccuracyFile& file : files) {
      for (const Json& row : file.document.at("rows")) rows.push_back(row);
    }
    figures = make_figures(rows);
    page = report_page(files, rows, figures);
  } catch (const Json::exception& error) {
    fail(request.files.front(), "or another file lacks what kintsugi accuracy writes: {}", error.what());
  }
  write_text(request.output, page);
  fmt::print("{}: {} rows, {} figures\n", request.output, rows.size(), figures.size());
  if (request.svg_folder.empty()) return;
  fmt::print("{}: {} pictures\n", request.svg_folder, write_pictures(request.svg_folder, figures));
}

}  // namespace

void add_report(CLI::App& program, Action& action) {
  auto request = std::make_shared<ReportRequest>();
  CLI::App* command = program.add_subcommand(
      "report", "Draw results of kintsugi accuracy: one page with figures and a table");
  command->footer(
      "Example:\n"
      "  kintsugi report accuracy.json -o report.html --svg pictures\n"
      "\n"
      "Figures: error against k, against m = n, against a distribution's parameter, wherever there are two\n"
      "values or more.");
  command->add_option("FILE", request->files, "Files of kintsugi accuracy")->required();
  command->add_option("-o,--output", request->output, "File for the page, HTML")->required();
  command->add_option("--svg", request->svg_folder, "Folder for every figure as an SVG of its own");
  command->callback([request, &action] { action = [request] { run_report(*request); }; });
}

}  // namespace kintsugi::tools
