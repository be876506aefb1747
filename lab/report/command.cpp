// kintsugi-lab report: draws files of kintsugi-lab accuracy and kintsugi bench as one page with figures.
#include <algorithm>
#include <memory>

#include "lab/commands.hpp"
#include "tools/io/atomic_file.hpp"
#include "tools/io/input_file.hpp"
#include "tools/measure/generators/generators.hpp"
#include "tools/report/figures.hpp"
#include "tools/report/page.hpp"
#include "tools/report/pictures.hpp"

namespace kintsugi::tools {

namespace {

// ---------------------------------------------- members that pages and figures read

// Requirement for the value of a member of a document. A missing member counts as null.
struct MemberRule {
  std::string path;  // "/problem/m"
  const char* expected;
  bool (*is_met)(const Json& value);
};

bool is_text(const Json& value) { return value.is_string() && !value.get_ref<const std::string&>().empty(); }

bool is_text_or_null(const Json& value) { return value.is_null() || is_text(value); }

bool is_size(const Json& value) { return value.is_number_integer() && value.get<std::int64_t>() >= 1; }

bool is_count(const Json& value) {
  return value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
}

bool is_count_or_null(const Json& value) { return value.is_null() || is_count(value); }

// True for a finite number. (Infinities and NaN are texts in JSON.)
bool is_finite_number(const Json& value) { return value.is_number(); }

bool is_number(const Json& value) {
  return is_finite_number(value) || value == "inf" || value == "-inf" || value == "nan";
}

bool is_number_or_null(const Json& value) { return value.is_null() || is_number(value); }

bool is_boolean(const Json& value) { return value.is_boolean(); }

bool is_boolean_or_null(const Json& value) { return value.is_null() || value.is_boolean(); }

// True for a type; a missing type counts as fp32.
bool is_type(const Json& value) { return value.is_null() || value == "fp32" || value == "fp64"; }

bool is_element_type(const Json& value) { return is_type(value) || value == "c32" || value == "c64"; }

bool is_distribution(const Json& value) {
  if (!is_text(value)) return false;
  try {
    measure::parse_distribution(value.get<std::string>());
  } catch (const std::runtime_error&) {
    return false;
  }
  return true;
}

// True for an object whose members are words, numbers, or lists of words and numbers.
bool is_settings(const Json& value) {
  const auto is_setting = [](const Json& setting) {
    return !setting.is_object() &&
           std::all_of(setting.begin(), setting.end(), [](const Json& item) { return item.is_primitive(); });
  };
  return value.is_object() && std::all_of(value.begin(), value.end(), is_setting);
}

bool is_histogram(const Json& value) {
  if (value.is_null()) return true;
  const Json edges = value.is_object() ? value.value("edges", Json()) : Json();
  const Json counts = value.is_object() ? value.value("counts", Json()) : Json();
  return edges.is_array() && edges.size() >= 2 && counts.is_array() && counts.size() == edges.size() + 1 &&
         std::all_of(edges.begin(), edges.end(), [](const Json& edge) { return edge.is_number(); }) &&
         std::is_sorted(edges.begin(), edges.end()) && std::all_of(counts.begin(), counts.end(), is_count);
}

const std::vector<MemberRule> head_members{
    {"/version", "a text", is_text},
    {"/commit", "a text", is_text},
    {"/machine", "an object", [](const Json& value) { return value.is_object(); }},
    {"/settings", "an object of words, numbers and lists of them", is_settings},
    {"/rows", "a list", [](const Json& value) { return value.is_array(); }}};

std::vector<MemberRule> make_row_members() {
  std::vector<MemberRule> members{
      {"/problem/m", "a number from 1 up", is_size},
      {"/problem/n", "a number from 1 up", is_size},
      {"/problem/k", "a number from 1 up", is_size},
      {"/problem/type", "fp32 or fp64", is_type},
      {"/distribution", "one of `kintsugi generate --help`", is_distribution},
      {"/seed", "a number from 0 up", is_count},
      {"/scheme", "a text", is_text},
      {"/engine", "a text", is_text},
      {"/accumulator", "a text or null", is_text_or_null},
      {"/errors/correctly_rounded_fraction", "a finite number", is_finite_number},
      {"/errors/contract_bound", "a number", is_number},
      {"/errors/within_contract_bound", "true or false", is_boolean},
      {"/histogram", "null, or ascending edges and one count more than edges", is_histogram}};
  // Rows may lack a measure: in an older file, or from a machine without it.
  for (const Measure& measure : measures) {
    if (measure.kind != MeasureKind::rate)
      members.push_back({std::string("/errors/") + measure.member, "a number or null", is_number_or_null});
  }
  return members;
}

const std::vector<MemberRule> row_members = make_row_members();

const std::vector<MemberRule> bound_members{{"/bound/relative", "a number", is_number},
                                            {"/bound/held", "true, false or null", is_boolean_or_null}};

const std::vector<MemberRule> baseline_members{
    {"/baseline/errors/frobenius_relative", "a number", is_number}};

// True for a positive number of seconds or operations.
bool is_positive(const Json& value) { return value.is_number() && value.get<double>() > 0; }

bool is_ratios(const Json& value) {
  return value.is_object() && std::all_of(value.begin(), value.end(), is_positive);
}

bool is_positive_or_null(const Json& value) { return value.is_null() || is_positive(value); }

bool is_timing_method(const Json& value) {
  return value.is_null() || value == "clock" || value == "stream" || value == "graph";
}

bool is_device(const Json& value) {
  return value.is_null() || (value.is_object() && is_text(value.value("name", Json())));
}

bool is_ceilings(const Json& value) {
  const auto is_ceiling = [](const Json& ceiling) {
    return ceiling.is_object() && is_positive(ceiling.value("rate", Json()));
  };
  return value.is_null() ||
         (value.is_object() && value.contains("copy") && std::all_of(value.begin(), value.end(), is_ceiling));
}

// Rules for members of the head that files of older versions may lack.
const std::vector<MemberRule> bench_head_members{
    {"/device", "null, or an object with a name", is_device},
    {"/ceilings", "null, or an object with copy and other positive rates", is_ceilings}};

// Rules for members of rows that a device computed.
const std::vector<MemberRule> device_row_members{
    {"/bandwidth", "a positive number", is_positive},
    {"/products", "a number from 0 up or null", is_count_or_null},
    {"/format", "a text or null", is_text_or_null}};

const std::vector<MemberRule> bench_members{
    {"/problem/m", "a number from 1 up", is_size},
    {"/problem/n", "a number from 1 up", is_size},
    {"/problem/k", "a number from 1 up", is_size},
    {"/problem/batch", "a number from 1 up or null",
     [](const Json& value) { return value.is_null() || is_size(value); }},
    {"/problem/type", "fp32, fp64, c32 or c64", is_element_type},
    {"/distribution", "one of `kintsugi generate --help`", is_distribution},
    {"/name", "a text", is_text},
    {"/scheme", "a text", is_text},
    {"/engine", "a text or null", is_text_or_null},
    {"/engine_details", "a text or null", is_text_or_null},
    {"/workspace_bytes", "a number from 0 up or null", is_count_or_null},
    {"/prepared", "a, b or null",
     [](const Json& value) { return value.is_null() || value == "a" || value == "b"; }},
    {"/threads", "a number from 1 up", is_size},
    {"/computed/m", "a number from 1 up", is_size},
    {"/computed/n", "a number from 1 up", is_size},
    {"/check/promise", "a text", is_text},
    {"/check/largest_ratio", "a number or null", is_number_or_null},
    {"/time/minimum", "a positive number", is_positive},
    {"/time/median", "a positive number", is_positive},
    {"/time/by", "clock, stream or graph", is_timing_method},
    {"/rate", "a positive number", is_positive},
    {"/of_ceiling", "a positive number or null", is_positive_or_null},
    {"/power_watts", "a number or null", is_number_or_null},
    {"/clock_mhz", "a number or null", is_number_or_null},
    {"/ratios", "an object of positive numbers", is_ratios}};

// Fails for the first member that breaks its rule. `where`: beginning of the member's name in the message.
void check_members(const std::string& file, const std::string& where, const Json& object,
                   const std::vector<MemberRule>& rules) {
  for (const MemberRule& rule : rules) {
    const Json::json_pointer path(rule.path);
    const Json value = object.contains(path) ? object.at(path) : Json();
    if (!rule.is_met(value))
      fail(file, "{}{} is {}; expected: {}", where, rule.path.substr(1), value.dump(), rule.expected);
  }
}

// Fails for the first value that violates lab/schema/accuracy.schema.json. The message names the file, the
// row and the member.
void check_accuracy(const std::string& file, const Json& document) {
  check_members(file, "", document, head_members);
  int row_number = 0;
  for (const Json& row : document.at("rows")) {
    const std::string where = fmt::format("row {}: ", ++row_number);
    check_members(file, where, row, row_members);
    if (row.contains("bound") && !row.at("bound").is_null()) check_members(file, where, row, bound_members);
    if (row.contains("baseline") && !row.at("baseline").is_null())
      check_members(file, where, row, baseline_members);
  }
}

// Like check_accuracy(), by docs/schema/bench.schema.json.
void check_bench(const std::string& file, const Json& document) {
  check_members(file, "", document, head_members);
  check_members(file, "", document, bench_head_members);
  const bool has_device = !document.value("device", Json()).is_null();
  int row_number = 0;
  for (const Json& row : document.at("rows")) {
    const std::string where = fmt::format("row {}: ", ++row_number);
    check_members(file, where, row, bench_members);
    if (row.at("time").value("by", "clock") == "clock") continue;
    if (!has_device) fail(file, "{}time/by is {}, and device is null", where, row.at("time").at("by").dump());
    check_members(file, where, row, device_row_members);
  }
}

// ---------------------------------------------------------------- command

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

std::string title_of(const std::vector<Json>& rows) {
  if (std::none_of(rows.begin(), rows.end(), is_rate_row))
    return "Kintsugi: errors against the exact product";
  if (std::all_of(rows.begin(), rows.end(), is_rate_row)) return "Kintsugi: rates of products";
  return "Kintsugi: errors and rates";
}

void run_report(const ReportRequest& request) {
  check_writable(request.output);
  if (is_standard_output(request.output) && request.json)
    fail("-o", "- is standard output, where --json writes too; give a file");
  if (!request.folders.png.empty()) require_png("--png");
  std::vector<Source> sources;
  std::vector<Json> rows;
  for (const auto& file : request.files) {
    const Source& source = sources.emplace_back(read_results(file));
    const bool is_bench = source.document.at("format") == "kintsugi.bench";
    for (const Json& row : source.document.at("rows"))
      rows.push_back(is_bench ? rate_row(source.document, row) : row);
  }
  const std::vector<Figure> figures = make_figures(rows);
  const std::string page = report_page({.title = title_of(rows), .preface = ""}, sources, rows, figures);
  write_text(request.output, page);
  const auto pictures = write_pictures(request.folders, figures);
  if (is_standard_output(request.output)) return;
  if (request.json) {
    Json result = document("report-page");
    result["files"] = request.files;
    result["rows"] = rows.size();
    result["page"] = request.output;
    result["figures"] = figures.size();
    result["pictures"] = pictures;
    return print(result);
  }
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
