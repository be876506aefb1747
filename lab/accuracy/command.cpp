// kintsugi-lab accuracy: measures errors of schemes, engines and accumulators over distributions, shapes and
// seeds.
#include <cstdio>
#include <memory>

#include "lab/accuracy/run.hpp"
#include "lab/commands.hpp"
#include "tools/io/atomic_file.hpp"

namespace kintsugi::tools {

namespace {

struct AccuracyRequest {
  SweepTexts flags;
  std::string plan;
  std::string output;
  bool json = false;
};

bool is_of_method(const Json& row, const Method& method) {
  return cell(row.at("problem"), "type") == type_text(method.type) && cell(row, "scheme") == method.scheme &&
         cell(row, "engine") == method.engine && cell(row, "accumulator") == method.accumulator;
}

void add_summary(Table& table, const Method& method, const Json& all_rows) {
  int rows = 0;
  int rows_with_bound = 0;   // rows in which the scheme's a-priori bound was checked
  int rows_in_contract = 0;  // rows in which every element meets the contract of its type
  double largest_frobenius = 0;
  double largest_componentwise = 0;
  double largest_bound_ratio = 0;  // largest error of an element over its a-priori bound
  for (const Json& row : all_rows) {
    if (!is_of_method(row, method)) continue;
    const Json& errors = row.at("errors");
    rows += 1;
    rows_in_contract += errors.at("within_contract_bound").get<bool>() ? 1 : 0;
    largest_frobenius = std::max(largest_frobenius, read_number(errors.at("frobenius_relative")));
    largest_componentwise = std::max(largest_componentwise, read_number(errors.at("max_componentwise")));
    const Json& bound = row.at("bound");
    if (bound.is_null() || bound.at("held").is_null()) continue;
    rows_with_bound += 1;
    largest_bound_ratio = std::max(largest_bound_ratio, read_number(bound.at("largest_ratio")));
  }
  const auto error = [&](double value) { return rows == 0 ? "-" : fmt::format("{:.2e}", value); };
  const auto& [type, scheme, engine, accumulator] = method;
  table.add({type_text(type), scheme, engine, accumulator.empty() ? "-" : accumulator, std::to_string(rows),
             error(largest_frobenius), error(largest_componentwise), std::to_string(rows_in_contract),
             scheme == "native" ? "-" : std::to_string(rows_with_bound),
             rows_with_bound == 0 ? "-" : fmt::format("{:.3f}", largest_bound_ratio)});
}

void print_summaries(const std::vector<Method>& methods, const Json& rows) {
  Table table({"type", "scheme", "engine", "accumulator", "rows", "worst frobenius", "worst componentwise",
               "in contract", "bound checked", "worst error / bound"});
  for (std::size_t column = 4; column < 10; ++column) table.align_right(column);
  for (const Method& method : methods) add_summary(table, method, rows);
  fmt::print("{}", table.text());
}

void run_accuracy(AccuracyRequest request) {
  require_settings();
  refuse_settings({"scheme", "policy", "accuracy", "engine", "accumulator"},
                  "--schemes, --engines and --accumulators name what runs");
  // -o - is --json: an interrupted sweep cannot be continued from standard output as from a file.
  if (is_standard_output(request.output)) {
    request.output.clear();
    request.json = true;
  }
  if (request.output.empty() && !request.json)
    fail("-o", "a file for the results is needed, unless --json is given");
  SweepTexts texts = request.plan.empty() ? SweepTexts{} : read_sweep_plan(request.plan);
  for (const auto& [name, words] : request.flags) {
    if (!words.empty()) texts[name] = words;
  }
  const Sweep sweep = make_sweep(texts);
  const SweepOutcome outcome = run_sweep(sweep, request.output);
  const Json& rows = outcome.document.at("rows");
  if (request.json) {
    fmt::print("{}", results_text(outcome.document));
  } else {
    print_summaries(methods_of(sweep), rows);
    fmt::print("\n{}: {} rows, {} of them were there already\n", request.output, rows.size(),
               outcome.rows_before);
  }
  if (outcome.refused > 0) {
    print_note("kintsugi-lab accuracy: {} rows are left out, the first: {}\n", outcome.refused,
               outcome.first_refusal);
  }
  // A bound that did not hold is an error in Kintsugi, either in the bound or in the product.
  if (outcome.bound_violations > 0)
    throw Finding(
        fmt::format("accuracy: {} of {} rows are beyond their scheme's a-priori bound, the first: {}",
                    outcome.bound_violations, rows.size(), outcome.first_violation));
}

std::string accuracy_footer() {
  return "Example:\n"
         "  kintsugi-lab accuracy --schemes fp16,fp16x3,native --distributions uniform,phi:2 --m 32 --n 32 --k "
         "16,256 -o accuracy.json\n"
         "\n"
         "--plan reads a JSON object with the names of these flags, {\"schemes\": [\"fp16\"], \"k\":\n"
         "[16, 256], ...}; a flag replaces the plan's list. A second run with the same -o skips the rows\n"
         "that the file has. Where all vectors are inside a scheme's window, every element is compared\n"
         "with the scheme's a-priori bound; if one exceeds it, the exit status is 1. kintsugi-lab report\n"
         "draws the results.";
}

}  // namespace

void add_accuracy(CLI::App& program, Action& action) {
  auto request = std::make_shared<AccuracyRequest>();
  CLI::App* command = program.add_subcommand(
      "accuracy", "Measure errors of schemes over engines, accumulators, distributions and sizes");
  command->footer(accuracy_footer());
  for (const auto& list : sweep_lists) {
    command->add_option(std::string("--") + list.name, request->flags[list.name], list.help)->delimiter(',');
  }
  command->add_flag_callback(
      "--histogram", [request] { request->flags["histogram"] = {"true"}; },
      "Give every row the distribution of its elements' differences to native");
  command->add_option("--plan", request->plan, "File with a sweep's description");
  command->add_option("-o,--output", request->output,
                      "File for the results, continued if it is there; - for standard output");
  command->add_flag("--json", request->json, "Print the document too, or instead of -o");
  command->callback([request, &action] { action = [request] { run_accuracy(*request); }; });
}

}  // namespace kintsugi::tools
