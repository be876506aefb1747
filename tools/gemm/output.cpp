#include "gemm/output.hpp"

#include <cmath>

#include "gemm/check.hpp"
#include "support.hpp"

namespace kintsugi::tools {

namespace {

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

std::string name_of(const Row& row) { return names_of_run(row).scheme; }

std::string error_text(double error) { return fmt::format("{:.2e}", error); }

std::vector<std::string> error_cells(const Row& row) {
  if (!row.errors) return {};
  const measure::ErrorReport& errors = *row.errors;
  return {error_text(errors.max_componentwise), error_text(errors.frobenius_relative),
          error_text(errors.max_relative), error_text(errors.mean_relative),
          fmt::format("{:.1f} %", 100 * errors.correctly_rounded_fraction)};
}

void print_table(const Outcome& outcome) {
  std::vector<std::string> heads{"scheme", "engine", "accumulator"};
  if (outcome.checked) {
    heads.insert(heads.end(),
                 {"max componentwise", "frobenius", "max relative", "MRED", "correctly rounded"});
  }
  heads.emplace_back("time");
  Table table(heads);
  for (std::size_t i = 3; i < heads.size(); ++i) table.align_right(i);
  for (const auto& row : outcome.rows) {
    const RunNames names = names_of_run(row);
    std::vector<std::string> cells{names.scheme, names.engine,
                                   names.accumulator.empty() ? "-" : names.accumulator};
    for (auto& text : error_cells(row)) cells.push_back(std::move(text));
    cells.push_back(time_text(row.seconds));
    table.add(std::move(cells));
  }
  fmt::print("{}", table.text());
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

const char* real_type_text(Type type) {
  return type == Type::float32 ? "fp32" : type == Type::float64 ? "fp64" : "dd";
}

// Returns p of the coefficient (k + 8) 2^-p.
int contract_bits(const std::string& accuracy) {
  return accuracy == "fp32" ? 24 : accuracy == "fp64" ? 53 : 104;
}

void print_contract(const Operands& operands, const Row& row) {
  const ContractVerdict verdict = judge(row);
  const char* parts = operands.complex() ? " of each part" : "";
  if (verdict.accuracy == "exact") {
    print_sentence(fmt::format("{}: {} the accuracy exact: {} of what was checked is correctly rounded",
                               name_of(row), verdict.met ? "within" : "beyond",
                               verdict.met ? "all" : "not all"));
  } else if (verdict.accuracy == "reproducible") {
    print_sentence(fmt::format("{}: {} the {} |A||B|{} that the accuracy reproducible promises", name_of(row),
                               verdict.met ? "within" : "beyond", error_text(verdict.coefficient), parts));
  } else if (verdict.accuracy == "fp32" || verdict.accuracy == "fp64" || verdict.accuracy == "dd") {
    print_sentence(fmt::format("{}: {} the bound ({}k + 8) 2^-{} |A||B|{} = {} of the {} contract",
                               name_of(row), verdict.met ? "within" : "beyond", operands.complex() ? "2" : "",
                               contract_bits(verdict.accuracy), parts, error_text(verdict.coefficient),
                               verdict.accuracy));
  } else {
    print_sentence(fmt::format("{}: {} the tolerance {} |A||B|{}", name_of(row),
                               verdict.met ? "within" : "beyond", verdict.accuracy, parts));
  }
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

const char* element_type_text(const Operands& operands) {
  if (operands.complex()) return operands.type() == Type::float32 ? "c32" : "c64";
  return real_type_text(operands.type());
}

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
          {"type", element_type_text(operands)},
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

}  // namespace

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

}  // namespace kintsugi::tools
