// kintsugi settings: lists the library's settings and their current values.
#include <memory>

#include "commands.hpp"

namespace kintsugi::tools {

namespace {

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
      "if `KINTSUGI_STRICT=1`.\n"
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
  if (request.markdown) {
    print_markdown();
    return;
  }
  require_settings();
  const Json table = describe_settings(nullptr);
  if (request.json) {
    print(table);
  } else {
    print_text(table);
  }
}

}  // namespace

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
