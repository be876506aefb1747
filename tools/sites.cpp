// kintsugi sites: lists the call sites that the compiler pass recorded in a program, and compares the levels
// that were compiled into it with those of a sites file.
#include <kintsugi/kintsugi.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "program.hpp"
#include "tuner/sites/table.hpp"

namespace kintsugi::tools {

namespace {

struct SitesRequest {
  bool json = false;
  std::string program;
  std::string check;  // sites file; "": none
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

Json level_json(const sites::Level& level) {
  Json json = Json::object();
  if (!level.scheme.empty()) json["scheme"] = level.scheme;
  if (!level.accuracy.empty()) json["accuracy"] = level.accuracy;
  if (!level.policy.empty()) json["policy"] = level.policy;
  return json;
}

Json site_json(const sites::TableSite& site) {
  const sites::SiteRecord& record = site.record;
  Json json = {{"site", site.name},           {"file", record.file},     {"line", record.line},
               {"function", record.function}, {"callee", record.callee}, {"ordinal", record.ordinal},
               {"inputs", inputs_json(site)}};
  if (record.level) json["compiled"] = level_json(*record.level);
  return json;
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

void print_table(const std::vector<sites::TableSite>& table) {
  Table lines({"call site", "line", "compiled", "may read"});
  lines.align_right(1);
  for (const sites::TableSite& site : table)
    lines.add({site.name, site.record.line == 0 ? "" : std::to_string(site.record.line),
               site.record.level ? level_text(*site.record.level) : "", inputs_text(site)});
  fmt::print("{}", lines.text());
}

// Returns the levels of a sites file by the names of its sites.
std::map<std::string, sites::Level> read_levels(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) fail("--check", "\"{}\" cannot be read: {}", path, std::strerror(errno));
  const Json file = parse_or_discard(stream);
  const auto wrong = [&](const std::string& what) { fail("--check", "\"{}\": {}", path, what); };
  if (!file.is_object() || file.value("format", Json()) != "kintsugi.sites" || !file.contains("sites") ||
      !file.at("sites").is_object())
    wrong("is no sites file");
  std::map<std::string, sites::Level> levels;
  for (const auto& [site, rule] : file.at("sites").items()) {
    if (!rule.is_object()) wrong("the rule of " + site + " is no object");
    sites::Level& level = levels[site];
    for (const auto& [name, value] : rule.items()) {
      std::string* const option = name == "scheme"     ? &level.scheme
                                  : name == "accuracy" ? &level.accuracy
                                  : name == "policy"   ? &level.policy
                                                       : nullptr;
      if (option == nullptr || !value.is_string())
        wrong("the rule of " + site + " has a wrong member " + name);
      *option = value.get<std::string>();
    }
    if (const std::string mistake = mistake_in(level); !mistake.empty())
      wrong("the rule of " + site + ": " + mistake);
  }
  return levels;
}

// Returns why the library makes no plan for a level; "": it makes one. `callee`: such as cblas_dgemm_64.
std::string reason_against(const sites::Level& level, const std::string& callee) {
  const std::size_t gemm = callee.find("gemm");
  if (level.is_native() || gemm == std::string::npos || gemm == 0) return "";
  const char letter = static_cast<char>(std::tolower(static_cast<unsigned char>(callee[gemm - 1])));
  const std::size_t type = std::string("sdcz").find(letter);
  if (type == std::string::npos) return "";  // cublasGemmEx has the types among its arguments
  constexpr kintsugi_type types_of_letters[] = {KINTSUGI_F32, KINTSUGI_F64, KINTSUGI_C32, KINTSUGI_C64};
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = 256;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = types_of_letters[type];
  const auto null_if_empty = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.scheme = null_if_empty(level.scheme);
  options.accuracy = null_if_empty(level.accuracy);
  options.policy = null_if_empty(level.policy);
  kintsugi_plan plan = nullptr;
  const bool is_made = kintsugi_plan_create(nullptr, &problem, &options, &plan) == KINTSUGI_SUCCESS;
  if (!is_made) return kintsugi_last_error();
  kintsugi_plan_destroy(plan);
  return "";
}

// Prints in what the program differs from the sites file. Sites that the file does not name are native. Fails
// if there is a difference.
void check_levels(const SitesRequest& request, const std::vector<sites::TableSite>& table) {
  std::map<std::string, sites::Level> levels = read_levels(request.check);
  std::set<std::string> found;
  std::vector<std::string> differences;
  for (const sites::TableSite& site : table) {
    constexpr bool with_hash = true;
    auto rule = levels.find(site.name);
    if (rule == levels.end()) rule = levels.find(sites::site_name(site.record, with_hash));
    if (rule == levels.end()) rule = levels.find(sites::site_name(site.record));
    const sites::Level wanted = rule == levels.end() ? sites::Level() : rule->second;
    if (rule != levels.end()) found.insert(rule->first);
    if (const std::string reason = reason_against(wanted, site.record.callee); !reason.empty())
      differences.push_back(fmt::format("{} cannot be {}: {}", site.name, level_text(wanted), reason));
    const sites::Level compiled = site.record.level.value_or(sites::Level());
    if (compiled == wanted || (compiled.is_native() && wanted.is_native())) continue;
    differences.push_back(fmt::format("{} is compiled to {}, and the file has {}", site.name,
                                      site.record.level ? level_text(compiled) : "no level",
                                      level_text(wanted)));
  }
  for (const auto& [site, level] : levels)
    if (!found.contains(site) && !level.is_native())
      differences.push_back(
          fmt::format("{}: the program has no such call site, and the file has {}", site, level_text(level)));
  for (const std::string& difference : differences) fmt::print("{}\n", difference);
  if (!differences.empty())
    throw Finding(fmt::format("sites: {} is not compiled as {} says; differences: {}", request.program,
                              request.check, differences.size()));
  fmt::print("{}: all {} call sites are compiled as {} says.\n", request.program, table.size(),
             request.check);
}

void run_sites(const SitesRequest& request) {
  const std::vector<sites::TableSite> table = table_of(request.program);
  if (!request.check.empty()) return check_levels(request, table);
  if (request.json) return print_json(request, table);
  if (table.empty()) {
    fmt::print("{} has no table of call sites: it calls no GEMM, or was not compiled with kintsugi-clang.\n",
               request.program);
    return;
  }
  print_table(table);
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
      "  kintsugi-clang -O2 --kintsugi-replace=sites.json program.c -o program -lblas -lkintsugi\n"
      "  kintsugi sites program --check sites.json\n"
      "\n"
      "The names are those of the file KINTSUGI_SITES (docs/COMPILER-PASS.md). \"may read\": sites of the\n"
      "same file whose results an operand may hold, or elements that were computed from them.\n"
      "\"compiled\": the level that is compiled into the call; empty where KINTSUGI_SITES decides.");
  CLI::Option* const json = command->add_flag("--json", request->json, "Print a JSON document");
  command
      ->add_option(
          "--check", request->check,
          "Print which call sites are compiled to another level than this sites file has, which of its levels "
          "the library refuses, and which of its sites the program lacks; exit status 1 if there are any")
      ->type_name("FILE")
      ->excludes(json);
  command->add_option("PROGRAM", request->program, "Program, library or object file")->required();
  command->callback([request, &action] { action = [request] { run_sites(*request); }; });
}

}  // namespace kintsugi::tools
