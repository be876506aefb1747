#include "explain/output.hpp"

#include <algorithm>

namespace kintsugi::tools {

namespace {

std::string power_text(const std::optional<int>& exponent) {
  return exponent ? fmt::format("2^{}", *exponent) : "-";
}

std::string source_text(const Json& source) {
  if (source.contains("distribution"))
    return fmt::format("{}, seed {}", cell(source, "distribution"), cell(source, "seed"));
  const auto operand = [&](const char* file, const char* trans) {
    return cell(source, trans) == "N" ? cell(source, file)
                                      : fmt::format("{}({})", cell(source, trans), cell(source, file));
  };
  return operand("a", "transa") + " times " + operand("b", "transb");
}

void print_facts(const Explanation& explanation) {
  Table table({"vectors", "count", "length", "largest", "smallest", "widest range", "median range", "zeros",
               "NaN", "Inf"});
  for (std::size_t column = 1; column < 10; ++column) table.align_right(column);
  const auto add = [&](const char* name, const OperandFacts& facts) {
    table.add({name, std::to_string(facts.vectors), std::to_string(facts.length),
               power_text(facts.largest_exponent), power_text(facts.smallest_exponent),
               std::to_string(facts.widest_dynamic_range), std::to_string(facts.median_dynamic_range),
               std::to_string(facts.zeros), std::to_string(facts.nans), std::to_string(facts.infinities)});
  };
  add("rows of op(A)", explanation.a);
  add("columns of op(B)", explanation.b);
  fmt::print("{}\n", table.text());
}

std::string k_block_text(const SchemeRow& row) {
  const Json block = row.k_block();
  if (block.is_null()) return "-";
  return block == 0 ? "all" : std::to_string(block.get<std::int64_t>());
}

// Returns the percentage of elements that keep the promised bits. It is rounded to 100 % only if all of them
// do.
std::string kept_share(const SchemeRow& row) {
  if (!row.retained_a) return "-";
  const auto elements = static_cast<double>(row.retained_a->elements + row.retained_b->elements);
  const auto promised = static_cast<double>(row.retained_a->promised + row.retained_b->promised);
  if (elements == 0) return "-";
  constexpr double almost_all = 99.99;
  return promised == elements ? "100 %"
                              : fmt::format("{:.4g} %", std::min(almost_all, 100 * promised / elements));
}

// Returns the fewest bits that an element keeps, and the promised bits. Both are those of the operand that is
// further below its promise, since the operands may have different slices.
std::string bits_text(const SchemeRow& row) {
  if (!row.retained_a) return "-";
  const auto rank = [](const measure::RetainedCounts& counts) {
    return std::pair(counts.fewest - counts.promised_bits, counts.fewest);
  };
  const measure::RetainedCounts& worse =
      rank(*row.retained_b) < rank(*row.retained_a) ? *row.retained_b : *row.retained_a;
  return fmt::format("{} of {}", worse.fewest, worse.promised_bits);
}

// Returns "yes" if the operands are inside the scheme's window, else "no". Returns "any" for integer formats:
// their windows have no lower end, since the floors of their bounds cover small elements.
std::string window_text(const SchemeRow& row) {
  if (!row.in_window) return "-";
  if (!*row.in_window) return "no";
  return row.window.integer ? "any" : "yes";
}

std::string bound_text(const std::optional<double>& bound) {
  return bound ? fmt::format("{:.2e}", *bound) : "-";
}

std::string contract_text(const SchemeRow& row) {
  if (!row.errors) return "-";
  if (!row.meets_contract) return "missed";
  return row.proved ? "met, proved" : "met";
}

void print_rows(const std::vector<SchemeRow>& rows) {
  Table table({"scheme", "products", "k block", "bits kept", "keep all", "in window", "bound", "bound here",
               "frobenius", "componentwise", "contract"});
  for (std::size_t column = 1; column < 10; ++column) table.align_right(column);
  for (const SchemeRow& row : rows) {
    const auto error = [&](double measure::ErrorReport::*member) {
      return row.errors ? fmt::format("{:.2e}", (*row.errors).*member) : std::string("-");
    };
    table.add({row.scheme, row.program.is_null() ? "-" : std::to_string(row.products()), k_block_text(row),
               bits_text(row), kept_share(row), window_text(row),
               row.bound ? bound_text(row.bound->coefficients.relative) : "-",
               row.bound ? bound_text(row.bound->sample_bound) : "-",
               error(&measure::ErrorReport::frobenius_relative),
               error(&measure::ErrorReport::max_componentwise), contract_text(row)});
  }
  fmt::print("{}\n", table.text());
}

std::string chain_text(const Choice& choice) {
  std::string text;
  for (const ChainCandidate& candidate : choice.candidates) {
    text += text.empty() ? "" : ", ";
    text += candidate.scheme;
    if (candidate.scheme == "native" && candidate.fixed_order) text += " in a fixed order";
    if (candidate.largest_dynamic_range)
      text += fmt::format(" (to {} binades)", *candidate.largest_dynamic_range);
  }
  return text;
}

void print_choice(const Choice& choice) {
  const std::string scheme = choice.selected ? choice.selected_candidate()->scheme : "nothing";
  std::string text = fmt::format("policy {}: {}; {}.", choice.policy, scheme, choice.reason);
  if (choice.candidates.size() > 1) text += fmt::format(" Fallback chain: {}.", chain_text(choice));
  fmt::print("{}\n", wrapped_for_output(text, 110, 2));
}

Json problem_document(const ExplainedProblem& problem, const std::string& type) {
  return {
      {"m", problem.m},           {"n", problem.n},
      {"k", problem.k},           {"type", type},
      {"source", problem.source}, {"prepared", problem.prepared == "none" ? Json() : Json(problem.prepared)}};
}

}  // namespace

void print_text(const ExplainedProblem& problem, const Explanation& explanation) {
  const Contract& contract = explanation.contract;
  fmt::print("{} x {} result, inner length {}, {}: {}\n", problem.m, problem.n, problem.k, explanation.type,
             source_text(problem.source));
  for (const auto& note : problem.operands.notes) fmt::print("{}\n", note);
  if (problem.prepared != "none") fmt::print("Operand {} is split before the call.\n", problem.prepared);
  fmt::print("Accuracy {} allows an error of {:.3g} |A||B|.\n\n", contract.accuracy, contract.coefficient);
  print_facts(explanation);
  print_rows(explanation.rows);
  const std::string legend = fmt::format(
      "bits kept: X of Y, where the split promises Y bits inside its window and some element keeps only X "
      "(of the operand that is further below its promise); keep all: elements that keep Y bits. Bounds "
      "and errors are in units of |A||B|, frobenius in units of |C|: bound is for any operands in the "
      "window, bound here for the sampled elements; errors are those of {} x {} elements of this product.",
      explanation.sampled_rows.size(), explanation.sampled_columns.size());
  fmt::print("{}\n\n", wrapped_for_output(legend, 110, 0));
  print_choice(explanation.choices.by_default);
  print_choice(explanation.choices.emulating);
  fmt::print("\n");
  Table table({"scheme", "why, why not"});
  for (const SchemeRow& row : explanation.rows)
    table.add({row.scheme, verdict(row, explanation.choices, contract)});
  fmt::print("{}", table.text());
}

void print_json(const ExplainedProblem& problem, const Explanation& explanation) {
  Json result = document("explain", 2);
  result["problem"] = problem_document(problem, explanation.type);
  result["notes"] = problem.operands.notes;
  result["operands"] = {{"a", facts_document(explanation.a)}, {"b", facts_document(explanation.b)}};
  result["contract"] = {{"accuracy", explanation.contract.accuracy},
                        {"coefficient", explanation.contract.coefficient}};
  result["sample"] = {{"rows", explanation.sampled_rows}, {"columns", explanation.sampled_columns}};
  result["choices"] = {choice_document(explanation.choices.by_default),
                       choice_document(explanation.choices.emulating)};
  result["schemes"] = Json::array();
  for (const SchemeRow& row : explanation.rows) {
    Json scheme = row_document(row);
    scheme["verdict"] = verdict(row, explanation.choices, explanation.contract);
    result["schemes"].push_back(scheme);
  }
  print(result);
}

}  // namespace kintsugi::tools
