// kintsugi schemes: lists the registry of schemes.
#include <algorithm>
#include <memory>
#include <set>

#include "commands.hpp"
#include "tools/measure/nearest_name.hpp"

namespace kintsugi::tools {

namespace {

// Returns the named schemes, in the registry's order; parameters after a colon are ignored.
Json wanted_schemes(const Json& all, const std::vector<std::string>& names) {
  if (names.empty()) return all;
  std::vector<std::string> known;
  for (const Json& scheme : all) known.push_back(cell(scheme, "name"));
  std::set<std::string> wanted;
  for (const auto& text : names) {
    const std::string name = text.substr(0, text.find(':'));
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail("NAME", "there is no scheme \"{}\"{}", name,
           measure::accepted_names(name, "the schemes are", known));
    wanted.insert(name);
  }
  Json result = Json::array();
  for (const Json& scheme : all) {
    if (wanted.contains(cell(scheme, "name"))) result.push_back(scheme);
  }
  return result;
}

void print_table(const Json& schemes) {
  Table table({"scheme", "operands", "slices", "products", "summary"});
  for (const auto& scheme : schemes) {
    const Json& a = scheme.at("split_a");
    const Json& b = scheme.at("split_b");
    std::string slices = fmt::format("{} {}", cell(a, "slices"), cell(a, "format"));
    if (a != b) slices += fmt::format(", {} {}", cell(b, "slices"), cell(b, "format"));
    table.add({cell(scheme, "name"), cell(scheme, "operands"), slices, cell(scheme, "products"),
               cell(scheme, "summary")});
  }
  fmt::print("{}\n", table.text());
}

void print_details(const Json& schemes) {
  for (const auto& scheme : schemes) {
    fmt::print("{}\n", cell(scheme, "name"));
    for (const char* key : {"bound", "window", "parameters", "source"}) {
      if (!cell(scheme, key).empty())
        fmt::print("  {:<12}{}\n", key, wrapped_for_output(cell(scheme, key), 96, 14));
    }
  }
}

void run_schemes(const std::vector<std::string>& names, bool json) {
  Json document = describe_schemes();
  document["schemes"] = wanted_schemes(document.at("schemes"), names);
  if (json) {
    print(document);
    return;
  }
  print_table(document.at("schemes"));
  print_details(document.at("schemes"));
}

}  // namespace

void add_schemes(CLI::App& program, Action& action) {
  auto json = std::make_shared<bool>(false);
  auto names = std::make_shared<std::vector<std::string>>();
  CLI::App* command = program.add_subcommand(
      "schemes", "List the schemes: what each computes, its bound, its parameters, its source");
  command->footer(
      "Example:\n"
      "  kintsugi schemes\n"
      "  kintsugi schemes fp16x3 h2sgemm");
  command->add_option("NAME", *names, "Schemes to list [all]");
  command->add_flag("--json", *json, "Print the library's JSON document");
  command->callback([=, &action] { action = [=] { run_schemes(*names, *json); }; });
}

}  // namespace kintsugi::tools
