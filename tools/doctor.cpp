// kintsugi doctor: lists what this machine offers, and why some features are missing; with a program, which
// BLAS and cuBLAS it loads, and whether the drop-ins reach them.
#include <memory>
#include <string>
#include <vector>

#include "matrix_units.hpp"
#include "program.hpp"
#include "program_libraries.hpp"
#include "support.hpp"

namespace kintsugi::tools {

namespace {

void append_processor(Json& findings) {
  findings.push_back(finding("processor", "ok", machine().processor));
  for (const auto& [flag, purpose] : product_flags) {
    const bool is_present = machine().has(flag);
    findings.push_back(
        finding(flag, is_present ? "ok" : "missing", purpose,
                is_present ? "" : "nothing to do: this processor, or its virtual machine, does not have it"));
  }
  findings.push_back(finding("threads", "ok", fmt::format("{} usable by this process", machine().threads)));
  findings.push_back(finding("memory", "ok",
                             fmt::format("{}, of which {} available", bytes_text(machine().memory_bytes),
                                         bytes_text(machine().available_bytes))));
}

// Appends findings about engines. The requirements of an engine precede the engine.
void append_engines(Json& findings) {
  const Json document = describe_engines();
  for (const auto& engine : document.at("engines")) {
    for (const auto& requirement : engine.at("requirements")) {
      const bool met = requirement.at("met").get<bool>();
      findings.push_back(finding(cell(requirement, "name"), met ? "ok" : "missing",
                                 cell(requirement, "details"), met ? "" : cell(requirement, "reason")));
    }
    const bool available = engine.at("available").get<bool>();
    findings.push_back(finding("engine " + cell(engine, "name"), available ? "ok" : "missing",
                               available ? cell(engine, "details") : cell(engine, "summary"),
                               available ? "" : cell(engine, "reason")));
  }
}

void append_settings(Json& findings) {
  if (const std::string& message = settings_table().malformed; !message.empty()) {
    findings.push_back(finding("settings", "malformed", message,
                               "correct it or unset it: until then every call fails with this message"));
    return;
  }
  const Json description = describe_settings(nullptr);
  for (const auto& variable : description.at("ignored_variables")) {
    const std::string nearest = cell(variable, "nearest");
    findings.push_back(
        finding("variable " + cell(variable, "name"), "ignored",
                "names no setting" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"),
                "nothing to do if another program reads it; KINTSUGI_STRICT=1 makes it an error"));
  }
  const std::size_t findings_before = findings.size();
  for (const auto& setting : settings_table().settings) {
    if (cell(setting, "source") == "default") continue;
    findings.push_back(
        finding("setting " + cell(setting, "name"), "ok",
                fmt::format("{} (from the {})", cell(setting, "value"), cell(setting, "source"))));
  }
  if (findings.size() == findings_before)
    findings.push_back(finding("settings", "ok", "all at their defaults"));
}

Json examine_machine(bool models) {
  Json findings = Json::array();
  append_processor(findings);
  append_engines(findings);
  append_settings(findings);
  if (models) append_matrix_units(findings);
  return findings;
}

void print_findings(const Json& findings) {
  constexpr std::size_t status_width = 9;
  constexpr std::size_t gap = 2;  // between columns
  constexpr std::size_t detail_width = 76;
  std::size_t name_width = 0;
  for (const Json& finding : findings) name_width = std::max(name_width, cell(finding, "name").size());
  const std::size_t indent = status_width + gap + name_width + gap;
  fmt::print("kintsugi {} (commit {}) on {}\n\n", kintsugi_version(), commit(), machine().system);
  for (const Json& finding : findings) {
    fmt::print("{:<{}}  {:<{}}  {}\n", cell(finding, "status"), status_width, cell(finding, "name"),
               name_width, wrapped(cell(finding, "detail"), detail_width, indent));
    if (const std::string advice = cell(finding, "advice"); !advice.empty())
      fmt::print("{:{}}-> {}\n", "", indent, wrapped(advice, detail_width - 3, indent + 3));
  }
}

struct DoctorRequest {
  bool json = false;
  bool models = false;
  std::vector<std::string> program;  // and its arguments; empty: the machine is examined
};

void run_doctor(const DoctorRequest& request) {
  const Json findings =
      request.program.empty() ? examine_machine(request.models) : examine_program(request.program);
  if (!request.json) return print_findings(findings);
  Json result = document("doctor");
  if (!request.program.empty()) result["program"] = request.program;
  result["findings"] = findings;
  print(result);
}

}  // namespace

void add_doctor(CLI::App& program, Action& action) {
  auto request = std::make_shared<DoctorRequest>();
  CLI::App* command = program.add_subcommand(
      "doctor", "Say what this machine offers, and why features are missing; or which BLAS a program loads");
  command->footer(
      "Every line says ok, missing, ignored, malformed or failed, and what to do. The exit status is 0\n"
      "even if something is missing.\n"
      "\n"
      "Example:\n"
      "  kintsugi doctor\n"
      "  kintsugi doctor --models\n"
      "  kintsugi doctor -- python3 train.py\n"
      "\n"
      "With a program: runs it once, its standard output on standard error, and names each BLAS and\n"
      "cuBLAS that it and what it starts have loaded, the files that call one, and whether the drop-ins\n"
      "of kintsugi run reach these calls. They forward every call meanwhile, so results are unchanged.");
  command->add_flag("--json", request->json, "Print the findings as JSON");
  CLI::Option* models =
      command->add_flag("--models", request->models,
                        "Also compare sums of the matrix units with the models whose bounds contracts use");
  command->add_option("PROGRAM", request->program, "Program and its arguments, after -- [none: this machine]")
      ->excludes(models);
  command->positionals_at_end();
  command->callback([request, &action] { action = [request] { run_doctor(*request); }; });
}

}  // namespace kintsugi::tools
