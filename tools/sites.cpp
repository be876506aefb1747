// kintsugi sites: lists the call sites that the compiler pass recorded in a program.
#include <memory>

#include "program.hpp"
#include "tuner/sites/table.hpp"

namespace kintsugi::tools {

namespace {

struct SitesRequest {
  bool json = false;
  std::string program;
};

std::vector<sites::TableSite> table_of(const std::string& program) try {
  return sites::read_table(program);
} catch (const sites::TableError& error) {
  fail("PROGRAM", "\"{}\" {}", program, error.what());
}

Json inputs_json(const sites::TableSite& site) {
  Json inputs = Json::array();
  for (const sites::SiteInput& input : site.record.inputs)
    inputs.push_back({{"operand", std::string(1, input.operand)},
                      {"site", sites::site_name(site.record, input, site.has_hash)}});
  return inputs;
}

Json site_json(const sites::TableSite& site) {
  const sites::SiteRecord& record = site.record;
  return {{"site", site.name},           {"file", record.file},     {"line", record.line},
          {"function", record.function}, {"callee", record.callee}, {"ordinal", record.ordinal},
          {"inputs", inputs_json(site)}};
}

void print_json(const SitesRequest& request, const std::vector<sites::TableSite>& table) {
  Json result = document("program-sites");
  result["program"] = request.program;
  result["sites"] = Json::array();
  for (const sites::TableSite& site : table) result["sites"].push_back(site_json(site));
  print(result);
}

std::string inputs_text(const sites::TableSite& site) {
  std::string text;
  for (const sites::SiteInput& input : site.record.inputs)
    text += fmt::format("{}{} of {}{}{}#{}", text.empty() ? "" : ", ", input.operand, input.function,
                        input.function.empty() ? "" : ":", input.callee, input.ordinal);
  return text;
}

void run_sites(const SitesRequest& request) {
  const std::vector<sites::TableSite> table = table_of(request.program);
  if (request.json) return print_json(request, table);
  if (table.empty()) {
    fmt::print("{} has no table of call sites: it calls no GEMM, or was not compiled with kintsugi-clang.\n",
               request.program);
    return;
  }
  Table lines({"call site", "line", "may read"});
  lines.align_right(1);
  for (const sites::TableSite& site : table)
    lines.add({site.name, site.record.line == 0 ? "" : std::to_string(site.record.line), inputs_text(site)});
  fmt::print("{}", lines.text());
}

}  // namespace

void add_sites(CLI::App& program, Action& action) {
  auto request = std::make_shared<SitesRequest>();
  CLI::App* command =
      program.add_subcommand("sites", "List the call sites of GEMM that kintsugi-clang found in a program");
  command->footer(
      "Example:\n"
      "  kintsugi-clang -O2 program.c -o program -lblas\n"
      "  kintsugi sites program\n"
      "\n"
      "The names are those of the file KINTSUGI_SITES (docs/COMPILER-PASS.md). \"may read\": sites of the\n"
      "same file whose results an operand may hold, or elements that were computed from them.");
  command->add_flag("--json", request->json, "Print a JSON document");
  command->add_option("PROGRAM", request->program, "Program, library or object file")->required();
  command->callback([request, &action] { action = [request] { run_sites(*request); }; });
}

}  // namespace kintsugi::tools
