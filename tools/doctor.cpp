// kintsugi doctor: lists what this machine offers, and why some features are missing.
#include <map>
#include <memory>

#include "commands.hpp"
#include "machine.hpp"

namespace kintsugi::tools {

namespace {

// A finding of the doctor. `advice`: what the user can do, or that nothing must be done.
struct DoctorFinding {
  std::string name;
  std::string status;  // "ok", "missing", "ignored" or "malformed"
  std::string detail;
  std::string advice;
};

using DoctorFindings = std::vector<DoctorFinding>;

// Returns the purpose of each processor flag, so that users can judge a missing one.
const std::map<std::string, std::string>& purposes() {
  static const std::map<std::string, std::string> texts{
      {"avx2", "256-bit vectors"},
      {"fma", "fused multiply-add"},
      {"avx512f", "512-bit vectors"},
      {"avx512ifma", "52-bit integer products"},
      {"avx512_vnni", "8-bit integer dot products"},
      {"avx512_bf16", "bf16 dot products"},
      {"amx_bf16", "bf16 matrix unit"},
      {"amx_int8", "8-bit integer matrix unit"},
  };
  return texts;
}

void append_processor(DoctorFindings& findings) {
  findings.push_back({"processor", "ok", machine().processor, ""});
  for (const auto& flag : product_flags()) {
    const bool is_present = machine().has(flag);
    findings.push_back(
        {flag, is_present ? "ok" : "missing", purposes().at(flag),
         is_present ? "" : "nothing to do: this processor, or its virtual machine, does not have it"});
  }
  findings.push_back({"threads", "ok", fmt::format("{} usable by this process", machine().threads), ""});
  findings.push_back({"memory", "ok",
                      fmt::format("{}, of which {} available", bytes_text(machine().memory_bytes),
                                  bytes_text(machine().available_bytes)),
                      ""});
}

// Appends findings about engines. The requirements of an engine precede the engine.
void append_engines(DoctorFindings& findings) {
  const Json document = describe_engines();
  for (const auto& engine : document.at("engines")) {
    for (const auto& requirement : engine.at("requirements")) {
      const bool met = requirement.at("met").get<bool>();
      findings.push_back({cell(requirement, "name"), met ? "ok" : "missing", cell(requirement, "details"),
                          met ? "" : cell(requirement, "reason")});
    }
    const bool available = engine.at("available").get<bool>();
    findings.push_back({"engine " + cell(engine, "name"), available ? "ok" : "missing",
                        available ? cell(engine, "details") : cell(engine, "summary"),
                        available ? "" : cell(engine, "reason")});
  }
}

void append_settings(DoctorFindings& findings) {
  if (const std::string& message = settings_table().malformed; !message.empty()) {
    findings.push_back({"settings", "malformed", message,
                        "correct it or unset it: until then every call fails with this message"});
    return;
  }
  const Json description = describe_settings(nullptr);
  for (const auto& variable : description.at("ignored_variables")) {
    const std::string nearest = cell(variable, "nearest");
    findings.push_back({"variable " + cell(variable, "name"), "ignored",
                        "names no setting" + (nearest.empty() ? "" : "; did you mean " + nearest + "?"),
                        "nothing to do if another program reads it; KINTSUGI_STRICT=1 makes it an error"});
  }
  const std::size_t findings_before = findings.size();
  for (const auto& setting : settings_table().settings) {
    if (cell(setting, "source") == "default") continue;
    findings.push_back({"setting " + cell(setting, "name"), "ok",
                        fmt::format("{} (from the {})", cell(setting, "value"), cell(setting, "source")),
                        ""});
  }
  if (findings.size() == findings_before) findings.push_back({"settings", "ok", "all at their defaults", ""});
}

// Appends the finding that a CPU needs no profile: no measured cost would change what the policy auto runs on
// a CPU (docs/design/calibration.md).
void append_processor_profile(DoctorFindings& findings) {
  findings.push_back({"profile of the processor", "ok",
                      "none is needed: native products are the fastest for fp32 and fp64 on every CPU "
                      "(`kintsugi calibrate` measures GPUs)",
                      ""});
}

DoctorFindings examine_machine() {
  DoctorFindings findings;
  append_processor(findings);
  append_processor_profile(findings);
  append_engines(findings);
  append_settings(findings);
  return findings;
}

void print_text(const DoctorFindings& findings) {
  constexpr std::size_t status_width = 9;
  constexpr std::size_t gap = 2;  // between columns
  constexpr std::size_t detail_width = 76;
  std::size_t name_width = 0;
  for (const auto& finding : findings) name_width = std::max(name_width, finding.name.size());
  const std::size_t indent = status_width + gap + name_width + gap;
  fmt::print("kintsugi {} (commit {}) on {}\n\n", kintsugi_version(), commit(), machine().system);
  for (const auto& finding : findings) {
    fmt::print("{:<{}}  {:<{}}  {}\n", finding.status, status_width, finding.name, name_width,
               wrapped(finding.detail, detail_width, indent));
    if (!finding.advice.empty()) {
      fmt::print("{:{}}-> {}\n", "", indent, wrapped(finding.advice, detail_width - 3, indent + 3));
    }
  }
}

void run_doctor(bool json) {
  const DoctorFindings findings = examine_machine();
  if (!json) {
    print_text(findings);
    return;
  }
  Json result = document("doctor");
  Json& list = result["findings"] = Json::array();
  for (const auto& finding : findings) {
    list.push_back({{"name", finding.name},
                    {"status", finding.status},
                    {"detail", finding.detail},
                    {"advice", finding.advice}});
  }
  print(result);
}

}  // namespace

void add_doctor(CLI::App& program, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      program.add_subcommand("doctor", "Say what this machine offers, and why features are missing");
  command->footer(
      "Every line says ok, missing, ignored or malformed, and what to do. The exit status is 0 even if\n"
      "something is missing.\n"
      "\n"
      "Example:\n"
      "  kintsugi doctor");
  command->add_flag("--json", *json, "Print the findings as JSON");
  command->callback([json, &action] { action = [json] { run_doctor(*json); }; });
}

}  // namespace kintsugi::tools
