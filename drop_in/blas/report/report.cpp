#include "report.hpp"

#include <kintsugi/kintsugi.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "blas/next_blas/next.hpp"
#include "blas/settings.hpp"
#include "blas/sites/site_report.hpp"
#include "blas/uncovered/uncovered.hpp"
#include "common/report_file.hpp"

namespace kintsugi::blas {

namespace {

using Json = nlohmann::ordered_json;

const char* op_name(Op op) { return op == Op::n ? "N" : op == Op::t ? "T" : op == Op::c ? "C" : "R"; }

const char* layout_name(Layout layout) { return layout == Layout::row_major ? "row" : "column"; }

const char* side_name(Side side) { return side == Side::left ? "L" : "R"; }
const char* uplo_name(Uplo uplo) { return uplo == Uplo::upper ? "U" : "L"; }
const char* diag_name(Diag diag) { return diag == Diag::unit ? "U" : "N"; }

// Returns the routine's letter arguments (SIDE, UPLO, TRANS, DIAG) in the order of the Fortran call.
std::string letters_of(const ProblemKey& key) {
  std::string letters;
  const auto add = [&](const char* letter) {
    letters += letters.empty() ? letter : std::string(" ") + letter;
  };
  if (has_side(key.routine)) add(side_name(key.side));
  if (has_uplo(key.routine)) add(uplo_name(key.uplo));
  if (has_op_a(key.routine)) add(op_name(key.op_a));
  if (has_op_b(key.routine)) add(op_name(key.op_b));
  if (has_diag(key.routine)) add(diag_name(key.diag));
  return letters;
}

std::string shape_of(const ProblemKey& key) {
  return letters_of(key) + ", m = " + std::to_string(key.m) + ", n = " + std::to_string(key.n) +
         ", k = " + std::to_string(key.k) + ", " + layout_name(key.layout) + "-major";
}

std::string programs_of(const ProblemRecord& problem) {
  std::string names;
  for (const auto& [name, calls] : problem.calls_of_program) names += (names.empty() ? "" : ", ") + name;
  if (problem.native_calls > 0) names += names.empty() ? "native" : ", native";
  if (problem.offloaded_calls > 0) names += ", offloaded";
  return names.empty() ? "nothing to multiply" : names;
}

// ------------------------------------------------------------------ document

Json document_of(const Record& record) {
  Json json = {{"format", "kintsugi.blas-report"},
               {"format_version", 1},
               {"version", kintsugi_version()},
               {"process", static_cast<std::int64_t>(::getpid())},
               {"policy", policy_name(settings().policy)},
               {"accuracy", settings().accuracy},
               {"next_blas", file_of(find_next("dgemm_"))}};
  json["problems"] = Json::array();
  for (const auto& [key, problem] : record.problems) json["problems"].push_back(problem_json(key, problem));
  json["other_problems"] = counts_json(record.others);
  json["uncovered_calls"] = uncovered_calls();
  if (settings().sites) json["sites"] = sites_json(record);
  return json;
}

// ------------------------------------------------------------------ table

std::string row_of(const ProblemRecord& problem, const std::string& text) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "%10lld %12.6f %12lld", static_cast<long long>(problem.calls),
                problem.seconds, static_cast<long long>(problem.recomputed_elements));
  return numbers + ("  " + text);
}

std::string totals_row(const Record& record) {
  ProblemRecord all = record.others;
  for (const auto& [key, problem] : record.problems) {
    all.calls += problem.calls;
    all.seconds += problem.seconds;
    all.recomputed_elements += problem.recomputed_elements;
    all.native_calls += problem.native_calls;
    all.scaled_calls += problem.scaled_calls;
    all.failed_calls += problem.failed_calls;
  }
  std::string text = "all calls: " + std::to_string(all.calls - all.native_calls - all.scaled_calls) +
                     " emulated, " + std::to_string(all.native_calls) + " native";
  if (all.failed_calls > 0)
    text += ", of which " + std::to_string(all.failed_calls) + " failed to be emulated";
  return row_of(all, text);
}

void print_table(const Record& record) {
  std::fprintf(stderr, "kintsugi: calls of BLAS under policy %s\n%10s %12s %12s  %s\n",
               policy_name(settings().policy), "calls", "seconds", "recomputed", "problem: what multiplied");
  std::fprintf(stderr, "%s\n", totals_row(record).c_str());
  std::vector<drop_in::TableRow> rows;
  for (const auto& [key, problem] : record.problems) {
    const std::string why = problem.native_calls > 0 ? "; " + problem.why : "";
    rows.push_back({problem.seconds, row_of(problem, std::string(key.symbol) + " " + shape_of(key) + ": " +
                                                         programs_of(problem) + why)});
  }
  if (record.others.calls > 0)
    rows.push_back({record.others.seconds, row_of(record.others, "problems beyond the first 10000")});
  drop_in::print_rows(std::move(rows), "problems");
  if (settings().sites) print_sites(record);
  if (const std::string uncovered = uncovered_sentence(); !uncovered.empty())
    std::fprintf(stderr, "kintsugi: %s\n", uncovered.c_str());
}

}  // namespace

Json counts_json(const ProblemRecord& problem) {
  Json programs = Json::object();
  for (const auto& [name, calls] : problem.calls_of_program) programs[name] = calls;
  return {{"calls", problem.calls},
          {"native_calls", problem.native_calls},
          {"scaled_calls", problem.scaled_calls},
          {"emulated_calls", programs},
          {"offloaded_calls", problem.offloaded_calls},
          {"failed_offloads", problem.failed_offloads},
          {"failed_calls", problem.failed_calls},
          {"recomputed_elements", problem.recomputed_elements},
          {"calls_with_special_values", problem.calls_with_special_values},
          {"seconds", problem.seconds}};
}

Json problem_json(const ProblemKey& key, const ProblemRecord& problem) {
  Json json = {{"symbol", std::string(key.symbol)}, {"layout", layout_name(key.layout)}};
  if (has_side(key.routine)) json["side"] = side_name(key.side);
  if (has_uplo(key.routine)) json["uplo"] = uplo_name(key.uplo);
  if (has_op_a(key.routine)) json["op_a"] = op_name(key.op_a);
  if (has_op_b(key.routine)) json["op_b"] = op_name(key.op_b);
  if (has_diag(key.routine)) json["diag"] = diag_name(key.diag);
  json.update({{"m", key.m}, {"n", key.n}, {"k", key.k}});
  json.update(counts_json(problem));
  json["why"] = problem.why;
  return json;
}

void print_explanation(const ProblemKey& key, const ProblemRecord& problem) {
  std::fprintf(stderr, "kintsugi: %.*s %s: %s; %s\n", static_cast<int>(key.symbol.size()), key.symbol.data(),
               shape_of(key).c_str(), programs_of(problem).c_str(), problem.why.c_str());
}

void write_report(const Record& record) {
  if (settings().report == "-") return print_table(record);
  drop_in::write_report_file(settings().report, drop_in::text_of(document_of(record)));
}

}  // namespace kintsugi::blas
