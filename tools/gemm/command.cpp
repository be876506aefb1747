// kintsugi gemm: computes C = alpha op(A) op(B) + beta C of matrices in files.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gemm/product.hpp"
#include "io/atomic_file.hpp"
#include "program.hpp"
#include "support.hpp"

namespace kintsugi::tools {

namespace {

// Everything that is printed when the work is done.
struct Outcome {
  ProblemRequest request;
  std::string output;           // file of C; "": none
  std::vector<Row> rows;        // the requested product comes first
  const Row* native = nullptr;  // native product of the same operands, if one was made
  bool checked = false;
  bool explained = false;
};

// Names of scheme, engine and accumulator that ran. They come from the report, since the data may decide
// them.
struct RunNames {
  std::string scheme;  // "none" if C was only scaled: alpha = 0, or an empty product
  std::string engine;
  std::string accumulator;
};

RunNames names_of_run(const Row& row) {
  const Json& candidates = row.report.at("candidates");
  if (candidates.empty()) return {"none", cell(row.plan, "engine"), ""};
  return {cell(candidates.front(), "scheme"), cell(row.plan, "engine"),
          cell(candidates.front(), "accumulator")};
}

// Returns the a-priori bound of the program that ran; null for the native product. If the scheme was adapted
// to the operands, the report has the bound; else the plan's candidate has it.
Json bound_document(const Row& row) {
  const Json adapted = row.report.value("adapted", Json());
  if (!adapted.is_null()) return adapted.at("bound_in_window");
  const RunNames names = names_of_run(row);
  for (const auto& candidate : row.plan.at("candidates")) {
    if (cell(candidate, "scheme") == names.scheme) return candidate.value("bound_in_window", Json());
  }
  return nullptr;
}

// Returns the scheme that ran; for a row that --compare asks for by an accuracy, after that accuracy.
std::string name_of(const Row& row) {
  const std::string scheme = names_of_run(row).scheme;
  return row.requested.is_accuracy ? fmt::format("{} ({})", row.requested.word, scheme) : scheme;
}

std::string error_text(double error) { return fmt::format("{:.2e}", error); }

void print_table(const Outcome& outcome) {
  std::vector<HeadedCells> table;
  for (const auto& row : outcome.rows) {
    const RunNames names = names_of_run(row);
    HeadedCells& cells = table.emplace_back();
    cells.emplace_back("scheme", name_of(row));
    cells.emplace_back("engine", names.engine);
    cells.emplace_back("accumulator", names.accumulator.empty() ? "-" : names.accumulator);
    if (row.errors) {
      cells.emplace_back("max componentwise", error_text(row.errors->max_componentwise));
      cells.emplace_back("frobenius", error_text(row.errors->frobenius_relative));
      cells.emplace_back("max relative", error_text(row.errors->max_relative));
      cells.emplace_back("MRED", error_text(row.errors->mean_relative));
      cells.emplace_back("correctly rounded",
                         fmt::format("{:.1f} %", 100 * row.errors->correctly_rounded_fraction));
    }
    cells.emplace_back("time", time_text(row.seconds));
  }
  fmt::print("{}", make_table(table, 3).text());
}

// Prints one line, wrapped only if the terminal is narrower.
void print_sentence(const std::string& text) {
  constexpr std::size_t any_width = 100000;
  fmt::print("{}\n", wrapped_for_output(text, any_width, 2));
}

// Prints remarks on elements whose error needs explanation.
void print_remarks(const Row& row) {
  const measure::ErrorReport& errors = *row.errors;
  const auto remark = [&](std::int64_t count, const char* text) {
    if (count > 0) print_sentence(fmt::format("{}: {} {}", name_of(row), count, text));
  };
  remark(errors.zero_references,
         "elements whose exact value is 0: their relative error is 0 if C is 0, else infinite");
  if (errors.special_mismatches == 0) {
    remark(errors.special_references, "elements are NaN or infinite as they must be");
  } else {
    remark(errors.special_references, "elements must be NaN or infinite");
    remark(errors.special_mismatches, "elements are NaN or infinite and must not be, or the reverse");
  }
  remark(errors.overflowed_references, "elements that rightly round to infinity");
}

// Returns p of the coefficient (k + 8) 2^-p.
int contract_bits(const std::string& accuracy) {
  return accuracy == "fp32" ? 24 : accuracy == "fp64" ? 53 : 104;
}

void print_contract(const Operands& operands, const Row& row) {
  const ContractVerdict verdict = judge(row);
  const std::string& accuracy = verdict.accuracy;
  const char* parts = operands.complex() ? " of each part" : "";
  std::string limit = fmt::format("the tolerance {} |A||B|{}", accuracy, parts);
  if (accuracy == "exact") {
    limit = fmt::format("the accuracy exact: {} of what was checked is correctly rounded",
                        verdict.met ? "all" : "not all");
  } else if (accuracy == "reproducible") {
    limit = fmt::format("the {} |A||B|{} that the accuracy reproducible promises",
                        error_text(verdict.coefficient), parts);
  } else if (accuracy == "fp32" || accuracy == "fp64" || accuracy == "dd") {
    limit = fmt::format("the bound ({}k + 8) 2^-{} |A||B|{} = {} of the {} contract",
                        operands.complex() ? "2" : "", contract_bits(accuracy), parts,
                        error_text(verdict.coefficient), accuracy);
  }
  print_sentence(fmt::format("{}: {} {}", name_of(row), verdict.met ? "within" : "beyond", limit));
}

void print_check(const Operands& operands, const Outcome& outcome) {
  const measure::ErrorReport& first = *outcome.rows.front().errors;
  const char* elements = operands.complex() ? "real and imaginary parts" : "elements";
  if (first.all_checked()) {
    fmt::print("errors against the exact result, all {} {} of C\n\n", first.elements_total, elements);
  } else {
    fmt::print("errors against the exact result, a sample of {} of the {} {} of C (seed {})\n\n",
               first.elements_checked, first.elements_total, elements, sample_seed);
  }
  print_table(outcome);
  fmt::print("\n");
  for (const auto& row : outcome.rows) print_contract(operands, row);
  for (const auto& row : outcome.rows) print_remarks(row);
}

// Returns sentences on the report: what ran, dynamic ranges, special values.
std::string report_words(const Row& row) {
  const Json& report = row.report;
  const RunNames names = names_of_run(row);
  if (names.scheme == "none") return "Ran: no product; C was scaled by beta.";
  std::string words = fmt::format("Ran: {}", names.scheme);
  if (!report.at("largest_dynamic_range_a").is_null()) {
    words += fmt::format("; rows of op(A) span up to {} binades, columns of op(B) up to {}",
                         cell(report, "largest_dynamic_range_a"), cell(report, "largest_dynamic_range_b"));
  }
  if (report.at("items_with_special_values") != 0) words += "; there are NaNs or infinities in the operands";
  return words + ".";
}

void print_plan(const Row& row) {
  const auto print_line = [](const std::string& line) {
    fmt::print("{}\n", wrapped_for_output(line, 100, 2));
  };
  for (const auto& line : row.plan.at("words")) print_line(line.get<std::string>());
  print_line(report_words(row));
  fmt::print("\n");
}

const char* op_name(int op) { return op == KINTSUGI_OP_N ? "N" : op == KINTSUGI_OP_T ? "T" : "C"; }

// Returns a scalar as JSON: a number, [real, imaginary] for complex operands, or [hi, lo] for double-double
// operands.
Json scalar_document(const Operands& operands, const std::complex<double>& value) {
  if (!operands.complex() && operands.type() != Type::double_double) return number(value.real());
  return Json::array({number(value.real()), number(value.imag())});
}

Json problem_document(const Operands& operands, const Outcome& outcome) {
  const kintsugi_problem& problem = operands.problem;
  return {{"m", problem.m},
          {"n", problem.n},
          {"k", problem.k},
          {"op_a", operands.transa},
          {"op_b", operands.transb},
          {"type", type_text(operands.type(), operands.complex())},
          {"layout", problem.layout == KINTSUGI_ROW_MAJOR ? "row-major" : "column-major"},
          {"stored_op_a", op_name(problem.op_a)},
          {"stored_op_b", op_name(problem.op_b)},
          {"alpha", scalar_document(operands, operands.alpha)},
          {"beta", scalar_document(operands, operands.beta)},
          {"a", outcome.request.a_file},
          {"b", outcome.request.b_file},
          {"c", outcome.request.c_file.empty() ? Json() : Json(outcome.request.c_file)}};
}

Json time_document(const Row& row) {
  return {{"seconds", row.seconds}, {"runs", row.runs}, {"plan_seconds", row.plan_seconds}};
}

Json contract_document(const Row& row) {
  if (!row.errors) return nullptr;
  const ContractVerdict verdict = judge(row);
  return {{"accuracy", verdict.accuracy},
          {"coefficient", verdict.coefficient},
          {"named", verdict.named},
          {"met", verdict.met}};
}

Json row_document(const Operands& operands, const Outcome& outcome, const Row& row) {
  const RunNames names = names_of_run(row);
  const bool has_baseline = outcome.native != nullptr && outcome.native != &row;
  Json result{{"problem", problem_document(operands, outcome)},
              {"distribution", nullptr},
              {"scheme", names.scheme},
              {"engine", names.engine},
              {"accumulator", names.accumulator.empty() ? Json() : Json(names.accumulator)},
              {"errors", row.errors ? errors_document(*row.errors) : Json()},
              {"contract", contract_document(row)},
              {"bound", bound_document(row)},
              {"time", time_document(row)},
              {"baseline", nullptr}};
  if (has_baseline) {
    const RunNames native = names_of_run(*outcome.native);
    result["baseline"] = {
        {"scheme", native.scheme}, {"engine", native.engine}, {"time", time_document(*outcome.native)}};
  }
  if (outcome.explained) {
    result["plan"] = row.plan;
    result["report"] = row.report;
  }
  return result;
}

// Returns the settings with which a row was made: {"scheme": {"value": "fp16", "source": "handle"}, ...}.
Json settings_document(const Row& row) {
  Json result = Json::object();
  for (const auto& setting : row.settings.at("settings")) {
    result[cell(setting, "name")] = {{"value", setting.at("value")}, {"source", setting.at("source")}};
  }
  return result;
}

// Prints plain text on stdout.
void print_text(const Operands& operands, const Outcome& outcome) {
  const Row& row = outcome.rows.front();
  for (const auto& note : operands.notes) fmt::print("{}\n", note);
  if (outcome.explained) print_plan(row);
  if (outcome.checked) print_check(operands, outcome);
  if (outcome.output.empty()) return;
  const RunNames names = names_of_run(row);
  fmt::print("{}: {} x {} {}, {} on {}, {}\n", outcome.output, row.c.rows, row.c.columns,
             row.c.element_type_name(), names.scheme, names.engine, time_text(row.seconds));
}

// Prints one document, format "kintsugi.gemm" (docs/schema/gemm.schema.json), on stdout.
void print_json(const Operands& operands, const Outcome& outcome) {
  Json result = document("gemm", 2);
  result["settings"] = settings_document(outcome.rows.front());
  result["seed"] = sample_seed;
  result["output"] = outcome.output.empty() ? Json() : Json(outcome.output);
  result["notes"] = operands.notes;
  Json& rows = result["rows"] = Json::array();
  for (const auto& row : outcome.rows) rows.push_back(row_document(operands, outcome, row));
  print(result);
}

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

// Returns the value of a setting: that of its flag, else that of environment, file or default.
std::string value_of(const std::vector<FlagValue>& flags, const std::string& name) {
  for (const FlagValue& flag : flags)
    if (flag.name == name) return flag.value;
  return cell(setting_named(name), "value");
}

// Fails for a flag that has no effect beside the other settings.
void refuse_idle_flags(const std::vector<FlagValue>& flags, bool compares_accuracies) {
  const std::string engine = value_of(flags, "engine");
  const bool is_offloaded = value_of(flags, "offload") != "off";
  for (const FlagValue& flag : flags) {
    const std::string& name = flag.name;
    if (name == "sites") fail(flag.flag, "has no effect here: the drop-ins alone read it");
    if ((name == "offload_memory" || name == "offload_keep") && !is_offloaded)
      fail(flag.flag, "has no effect without --offload auto or force");
    if (name == "cublas" && engine != "cuda" && !is_offloaded)
      fail(flag.flag, "has no effect without --engine cuda or --offload");
    if (name.starts_with("cpu_") && (engine == "reference" || engine == "cuda"))
      fail(flag.flag, "has no effect on the engine {}", engine);
    const bool is_scheme_flag = std::any_of(flags.begin(), flags.end(),
                                            [](const FlagValue& other) { return other.name == "scheme"; });
    if (name == "policy" && flag.value != "native" && is_scheme_flag && !compares_accuracies)
      fail(flag.flag, "{} has no effect beside --scheme {}, which runs in any case", flag.value,
           value_of(flags, "scheme"));
  }
}

// Fails if the plan has no program with the accumulator that a flag names.
void refuse_idle_accumulator(const std::vector<FlagValue>& flags, const Json& plan) {
  for (const FlagValue& flag : flags) {
    if (flag.name != "accumulator") continue;
    const Json& candidates = plan.at("candidates");
    if (std::none_of(candidates.begin(), candidates.end(),
                     [&](const Json& candidate) { return cell(candidate, "accumulator") == flag.value; }))
      fail(flag.flag, "{} has no effect: no program of the plan adds in this way; name one by --scheme",
           flag.value);
  }
}

// Returns the native product, with which errors and times are compared; nullptr if this version has none.
std::unique_ptr<RequestedProduct> native_product(const Operands& operands,
                                                 const std::vector<FlagValue>& flags) {
  try {
    return std::make_unique<RequestedProduct>(operands, flags, ComparedProduct{"native", false});
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
  std::vector<ComparedProduct> compared;
  for (const auto& word : request.compare) compared.push_back(compared_product(word));
  refuse_idle_flags(flags, std::any_of(compared.begin(), compared.end(),
                                       [](const auto& product) { return product.is_accuracy; }));
  PlannedProducts products;
  products.requested.emplace_back(operands, flags);
  refuse_idle_accumulator(flags, products.requested.front().plan());
  for (const auto& product : compared) products.requested.emplace_back(operands, flags, product);
  if (request.check && !contains<std::string>(request.compare, "native"))
    products.native = native_product(operands, flags);
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
    if (row.requested.word == "native") outcome.native = &row;
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
  command.add_option("A", problem.a_file, "Left operand, .npy or .mtx; - for standard input")->required();
  command.add_option("B", problem.b_file, "Right operand, likewise")->required();
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
  command.add_option("--c", problem.c_file, "The old C, likewise; only read, unless -o names it too");
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
    const std::string accepted = cell(setting, "accepted");
    const bool is_choice = cell(setting, "type") == "choice";
    const std::string text = cell(setting, "doc") + (is_choice ? "" : " Accepted: " + accepted + ".");
    target->option = command.add_option(flag, target->setting.value, wrapped(text, 80, 0))->group("Settings");
    if (is_choice) target->option->type_name("{" + CLI::detail::find_and_replace(accepted, ", ", ",") + "}");
  }
}

void add_output_options(CLI::App& command, GemmRequest& request) {
  command.add_flag("--explain", request.explain, "Say in words what is computed, how, and why");
  auto* check = command.add_flag("--check", request.check,
                                 "Compare with the exact result (if C is large, a sample of its elements)");
  command
      .add_option("--compare", request.compare,
                  "Further schemes and accuracies to run and check, comma-separated; native too")
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
      "  kintsugi gemm A.mtx B.npy --type fp32 --transa T --check --compare fp16,exact,1e-3,native\n"
      "  kintsugi gemm Z.npy Z.npy --transa C --alpha 0,1 --accuracy exact --check\n"
      "  kintsugi generate phi:2 512x512 -o - | kintsugi gemm - B.npy -o C.npy\n"
      "\n"
      "Operands may be pipes of any name, as in kintsugi gemm <(gunzip -c A.npy.gz) B.npy -o C.npy.\n"
      "Settings also come from the environment and a file: kintsugi settings.");
  add_operand_options(*command, *request);
  add_setting_options(*command, *request);
  add_output_options(*command, *request);
  command->callback([request, &action] { action = [request] { run_gemm(*request); }; });
}

}  // namespace kintsugi::tools
