// kintsugi schemes: the registry of schemes.
#include <memory>

#include "commands.hpp"

namespace kintsugi::tools {

namespace {

void run_schemes(bool json) {
  const Json schemes = describe_schemes();
  if (json) {
    print(schemes);
    return;
  }
  Table table({"scheme", "operands", "slices", "products", "summary"});
  for (const auto& scheme : schemes.at("schemes")) {
    const Json& a = scheme.at("split_a");
    const Json& b = scheme.at("split_b");
    std::string slices = fmt::format("{} {}", cell(a, "slices"), cell(a, "format"));
    if (a != b) slices += fmt::format(", {} {}", cell(b, "slices"), cell(b, "format"));
    table.add({cell(scheme, "name"), cell(scheme, "operands"), slices, cell(scheme, "products"),
               cell(scheme, "summary")});
  }
  fmt::print("{}\n", table.text());
  for (const auto& scheme : schemes.at("schemes")) {
    fmt::print("{}\n", cell(scheme, "name"));
    for (const char* key : {"bound", "window", "source"}) {
      if (!cell(scheme, key).empty()) fmt::print("  {:<8}{}\n", key, wrapped(cell(scheme, key), 96, 10));
    }
  }
}

}  // namespace

void add_schemes(CLI::App& program, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      program.add_subcommand("schemes", "List the schemes: what each computes, its bound, its source");
  command->footer(
      "Example:\n"
      "  kintsugi schemes");
  command->add_flag("--json", *json, "Print the library's JSON document");
  command->callback([json, &action] { action = [json] { run_schemes(*json); }; });
}

}  // namespace kintsugi::tools
