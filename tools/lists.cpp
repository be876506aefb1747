// kintsugi schemes, engines and settings: list what the library has.
#include <memory>
#include <set>

#include "program.hpp"
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
    if (!contains(known, name))
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
  if (json) return print(document);
  print_table(document.at("schemes"));
  print_details(document.at("schemes"));
}

void run_engines(bool json) {
  const Json engines = describe_engines();
  if (json) return print(engines);
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

struct SettingsRequest {
  bool json = false;
  bool markdown = false;
};

void print_text(const Json& table) {
  Table values({"setting", "value", "from", "environment", "accepted"});
  for (const auto& setting : table.at("settings")) {
    values.add({cell(setting, "name"), cell(setting, "value"), cell(setting, "source"),
                cell(setting, "environment"), cell(setting, "accepted")});
  }
  fmt::print("{}\n", values.text());
  for (const auto& setting : table.at("settings")) {
    fmt::print("{}\n  {}\n", cell(setting, "name"), wrapped_for_output(cell(setting, "doc"), 96, 2));
  }
}

// Returns the text with "|" escaped, which would end a cell of a table.
std::string markdown_cell(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return result;
}

std::string code(const std::string& text) { return text.empty() ? "" : fmt::format("`{}`", text); }

// Prints docs/SETTINGS.md; a test compares the file with this.
void print_markdown() {
  fmt::print(
      "# Settings\n"
      "\n"
      "Written by `kintsugi settings --markdown` from the table in `src/base/settings.def`; change it\n"
      "there.\n"
      "\n"
      "A value is taken from the nearest place that has one: the call's options, the handle\n"
      "(`kintsugi_set`; the flags of `kintsugi gemm` set it), the environment, the settings file, the\n"
      "default. The settings file is `$KINTSUGI_CONFIG`, else `$XDG_CONFIG_HOME/kintsugi/settings`,\n"
      "else `~/.config/kintsugi/settings`; its lines are `name = value`, and `#` begins a comment. An\n"
      "unknown name or a value that is not accepted is an error (`KINTSUGI_BAD_SETTING`) with the\n"
      "accepted values. An unknown environment variable that begins with `KINTSUGI_` is an error only\n"
      "if `KINTSUGI_STRICT=1`. The drop-ins have [further variables](BLAS-DROP-IN.md#what-it-prints).\n"
      "\n"
      "| setting | environment | flag of `kintsugi gemm` | accepted | default | what it does |\n"
      "|---|---|---|---|---|---|\n");
  for (const auto& setting : settings_table().settings) {
    fmt::print("| `{}` | `{}` | {} | {} | {} | {} |\n", cell(setting, "name"), cell(setting, "environment"),
               code(flag_of(setting)), markdown_cell(cell(setting, "accepted")),
               code(cell(setting, "default")), markdown_cell(cell(setting, "doc")));
  }
}

void run_settings(const SettingsRequest& request) {
  if (request.markdown) return print_markdown();
  require_settings();
  const Json table = describe_settings(nullptr);
  if (request.json) return print(table);
  print_text(table);
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

void add_settings(CLI::App& program, Action& action) {
  auto request = std::make_shared<SettingsRequest>();
  CLI::App* command =
      program.add_subcommand("settings", "List the settings, their current values and where these come from");
  command->footer(
      "Example:\n"
      "  KINTSUGI_ENGINE=reference kintsugi settings");
  auto* json = command->add_flag("--json", request->json, "Print the library's JSON document");
  command->add_flag("--markdown", request->markdown, "Print the text of docs/SETTINGS.md")->excludes(json);
  command->callback([request, &action] { action = [request] { run_settings(*request); }; });
}

}  // namespace kintsugi::tools
