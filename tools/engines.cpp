// kintsugi engines: lists the engines that can execute products on this machine.
#include <memory>

#include "commands.hpp"

namespace kintsugi::tools {

namespace {

void run_engines(bool json) {
  const Json engines = describe_engines();
  if (json) {
    print(engines);
    return;
  }
  Table table({"engine", "available", "summary"});
  for (const auto& engine : engines.at("engines")) {
    table.add({cell(engine, "name"), cell(engine, "available"), cell(engine, "summary")});
  }
  fmt::print("{}\n", table.text());
  for (const auto& engine : engines.at("engines")) {
    fmt::print("{}\n", cell(engine, "name"));
    for (const char* key : {"details", "reason"}) {
      if (!cell(engine, key).empty()) fmt::print("  {}\n", wrapped_for_output(cell(engine, key), 96, 2));
    }
    for (const auto& [format, accumulators] : engine.at("accumulators").items()) {
      const std::string names = cell(engine.at("accumulators"), format);
      fmt::print("  {:<9} added as {}\n", format, wrapped_for_output(names, 96, 21));
    }
  }
}

}  // namespace

void add_engines(CLI::App& program, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      program.add_subcommand("engines", "List the engines, what each can do here, and why some cannot run");
  command->footer(
      "Example:\n"
      "  kintsugi engines");
  command->add_flag("--json", *json, "Print the library's JSON document");
  command->callback([json, &action] { action = [json] { run_engines(*json); }; });
}

}  // namespace kintsugi::tools
