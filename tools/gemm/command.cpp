// kintsugi gemm: computes C = alpha op(A) op(B) + beta C of matrices in files.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "command_line.hpp"
#include "commands.hpp"
#include "gemm/check.hpp"
#include "gemm/output.hpp"
#include "gemm/problem.hpp"
#include "gemm/product.hpp"
#include "io/atomic_file.hpp"

namespace kintsugi::tools {

namespace {

// A flag from the library's table of settings.
struct SettingFlag {
  FlagValue setting;
  CLI::Option* option = nullptr;
};

struct GemmRequest {
  ProblemRequest problem;
  std::string output;
  std::vector<std::string> compare;
  std::vector<std::unique_ptr<SettingFlag>> settings;
  bool explain = false;
  bool check = false;
  bool json = false;

  std::vector<FlagValue> given_flags() const {
    std::vector<FlagValue> result;
    for (const auto& setting : settings) {
      if (setting->option->count() > 0) result.push_back(setting->setting);
    }
    return result;
  }
};

bool same_file(const std::string& x, const std::string& y) {
  std::error_code error;
  return std::filesystem::equivalent(x, y, error) && !error;
}

void check_request(const GemmRequest& request) {
  if (request.output.empty()) {
    if (!request.check && !request.explain)
      fail("-o", "a file for C is needed, unless --check or --explain is given");
    return;
  }
  check_output(request.output);
  if (is_standard_output(request.output) && (request.check || request.explain || request.json))
    fail("-o", "- is standard output, where {} writes too; give a file",
         request.json    ? "--json"
         : request.check ? "--check"
                         : "--explain");
  for (const auto& input : {request.problem.a_file, request.problem.b_file}) {
    if (same_file(request.output, input))
      fail("-o", "{} is an operand, {}; choose another file", request.output, input);
  }
}

// Returns the native product, with which errors and times are compared; nullptr if this version has none.
std::unique_ptr<RequestedProduct> native_product(const Operands& operands,
                                                 const std::vector<FlagValue>& flags) {
  try {
    return std::make_unique<RequestedProduct>(operands, flags, "native");
  } catch (const LibraryError& error) {
    if (error.is_unexpected()) throw;
    return nullptr;
  }
}

// The products of the table, and the native product with which they are compared. All plans are made before
// the first product runs, so that an unknown name is reported at once.
struct PlannedProducts {
  std::vector<RequestedProduct> requested;   // the product of the flags, then those of --compare
  std::unique_ptr<RequestedProduct> native;  // nullptr if it is not needed, or if it is one of `requested`
};

PlannedProducts plan_all(const Operands& operands, const GemmRequest& request) {
  const auto flags = request.given_flags();
  PlannedProducts products;
  products.requested.emplace_back(operands, flags);
  for (const auto& scheme : request.compare) products.requested.emplace_back(operands, flags, scheme);
  const bool compares_native =
      std::find(request.compare.begin(), request.compare.end(), "native") != request.compare.end();
  if (request.check && !compares_native) products.native = native_product(operands, flags);
  return products;
}

// Fails if a setting names the accuracy and some product does not keep it.
void require_accuracy(const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    const ContractVerdict verdict = judge(row);
    if (verdict.named && !verdict.met)
      throw Finding(fmt::format("gemm: the error of C is larger than the requested accuracy {} allows",
                                verdict.accuracy));
  }
}

void run_gemm(const GemmRequest& request) {
  require_settings();
  check_request(request);
  const Operands operands = read_operands(request.problem);
  if (!request.output.empty()) check_holds(request.output, operands.type(), operands.complex());
  PlannedProducts products = plan_all(operands, request);
  Outcome outcome{.request = request.problem,
                  .output = request.output,
                  .rows = {},
                  .native = nullptr,
                  .checked = request.check,
                  .explained = request.explain};
  for (auto& product : products.requested) outcome.rows.push_back(product.run());
  std::optional<Row> unlisted_native;  // native product that is in no row of the table
  if (products.native) unlisted_native = products.native->run();
  for (const auto& row : outcome.rows) {
    if (row.requested_scheme == "native") outcome.native = &row;
  }
  if (unlisted_native) outcome.native = &*unlisted_native;
  if (request.check) {
    for (auto& row : outcome.rows)
      measure(operands, outcome.native != nullptr ? &outcome.native->c : nullptr, row);
  }
  if (!request.output.empty()) write_matrix(request.output, outcome.rows.front().c);
  if (request.json) {
    print_json(operands, outcome);
  } else if (!is_standard_output(request.output)) {
    print_text(operands, outcome);
  }
  if (request.check) require_accuracy(outcome.rows);
}

void add_operand_options(CLI::App& command, GemmRequest& request) {
  const auto trans = one_of_any_case({"N", "T", "C"});
  ProblemRequest& problem = request.problem;
  command.add_option("A", problem.a_file, "Left operand, .npy or .mtx")->required();
  command.add_option("B", problem.b_file, "Right operand, .npy or .mtx")->required();
  command.add_option(
      "-o,--output", request.output,
      "File for C, .npy or .mtx, - for standard output (.npy); not needed with --check or --explain");
  command.add_option("--transa", problem.transa, "op(A): N, T (transpose) or C (conjugate transpose)")
      ->transform(trans)
      ->capture_default_str();
  command.add_option("--transb", problem.transb, "op(B), likewise")->transform(trans)->capture_default_str();
  command
      .add_option("--alpha", problem.alpha,
                  "C = alpha op(A) op(B) + beta C; complex: RE,IM; double-double: HI,LO")
      ->capture_default_str();
  command.add_option("--beta", problem.beta, "Factor of the old C; needs --c; written like --alpha [0]");
  command.add_option("--c", problem.c_file, "The old C, .npy or .mtx; only read, unless -o names it too");
  command
      .add_option("--type", problem.type,
                  "Type to compute in, fp32, fp64, c32, c64 or dd; elements are rounded once [the files']")
      ->check(one_of({"fp32", "fp64", "c32", "c64", "dd"}));
  command.add_option("--order", problem.order, "Order of C in a .npy file: c or fortran")
      ->check(one_of({"c", "fortran"}))
      ->capture_default_str();
}

// Adds a flag for every setting of the library; a new setting needs no change here.
void add_setting_options(CLI::App& command, GemmRequest& request) {
  for (const auto& setting : settings_table().settings) {
    auto& target = request.settings.emplace_back(std::make_unique<SettingFlag>());
    const std::string flag = flag_of(setting);
    target->setting = {flag, cell(setting, "name"), cell(setting, "environment"), "",
                       setting.value("environment_only", false)};
    target->option =
        command
            .add_option(
                flag, target->setting.value,
                wrapped(cell(setting, "doc") + " Accepted: " + cell(setting, "accepted") + ".", 80, 0))
            ->group("Settings");
  }
}

void add_output_options(CLI::App& command, GemmRequest& request) {
  command.add_flag("--explain", request.explain, "Say in words what is computed, how, and why");
  auto* check = command.add_flag("--check", request.check,
                                 "Compare with the exact result (if C is large, a sample of its elements)");
  command
      .add_option("--compare", request.compare,
                  "Further schemes to run and check, comma-separated; native too")
      ->delimiter(',')
      ->needs(check);
  command.add_flag("--json", request.json, "Print one JSON document instead of text");
}

}  // namespace

void add_gemm(CLI::App& program, Action& action) {
  auto request = std::make_shared<GemmRequest>();
  CLI::App* command =
      program.add_subcommand("gemm", "Multiply two matrices of files: C = alpha op(A) op(B) + beta C");
  command->footer(
      "Example:\n"
      "  kintsugi gemm A.npy B.npy -o C.npy --scheme fp16x3-wide --explain\n"
      "  kintsugi gemm A.mtx B.npy --type fp32 --transa T --check --compare fp16,native\n"
      "  kintsugi gemm Z.npy Z.npy --transa C --alpha 0,1 --accuracy exact --check\n"
      "\n"
      "Settings also come from the environment and a file: kintsugi settings.");
  add_operand_options(*command, *request);
  add_setting_options(*command, *request);
  add_output_options(*command, *request);
  command->callback([request, &action] { action = [request] { run_gemm(*request); }; });
}

}  // namespace kintsugi::tools
