// The BLAS drop-in's own part of the report: the members of a problem and of a call site, the table, the
// outputs of call sites, and when the report is written.
#include "core/record.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "answer.hpp"
#include "core/lock.hpp"
#include "core/settings.hpp"

namespace kintsugi::drop_in {

namespace {

const char* op_name(Op op) { return op == Op::n ? "N" : op == Op::t ? "T" : op == Op::c ? "C" : "R"; }

const char* layout_name(Layout layout) { return layout == Layout::row_major ? "row" : "column"; }

const char* side_name(Side side) { return side == Side::left ? "L" : "R"; }
const char* uplo_name(Uplo uplo) { return uplo == Uplo::upper ? "U" : "L"; }
const char* diag_name(Diag diag) { return diag == Diag::unit ? "U" : "N"; }

// Returns the routine's letter arguments (SIDE, UPLO, TRANS, DIAG) in the order of the Fortran call.
std::string letters_of(const RecordKey& key) {
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

Json rule_json(const Site& site) {
  if (!site.has_rule) return nullptr;
  Json rule = Json::object();
  if (!site.rule.scheme.empty()) rule["scheme"] = site.rule.scheme;
  if (!site.rule.accuracy.empty()) rule["accuracy"] = site.rule.accuracy;
  if (!site.rule.policy.empty()) rule["policy"] = site.rule.policy;
  return rule;
}

Json source_json(const Site& site) {
  if (!site.source) return nullptr;
  return {{"file", site.source->file}, {"line", site.source->line}, {"callee", site.source->callee}};
}

std::string output_name(std::size_t ordinal) { return std::to_string(ordinal) + ".npy"; }

}  // namespace

std::string shape_of(const RecordKey& key) {
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

Json problem_json(const RecordKey& key, const ProblemRecord& problem) {
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

void complete(Json& json, const Site& site, const SiteRecord& record) {
  json["source"] = source_json(site);
  json["callers"] = callers_json(site.callers);
  json["rule"] = rule_json(site);
  json.update(counts_json(record.all));
  json["why"] = record.all.why;
  json["multiplications"] = record.multiplications;
  json["inputs"] = inputs_json(record.inputs);
  json["may_read"] = may_read_json(site.source);
  json["error"] = record.errors.json();
  json["output"] = record.output.is_empty() ? Json() : Json(output_name(json["ordinal"]));
  json["problems"] = Json::array();
  for (const auto& [key, problem] : record.problems) json["problems"].push_back(problem_json(key, problem));
}

Json further_members() { return {{"uncovered_calls", blas::uncovered_calls()}}; }

void forget_own_record() { blas::forget_uncovered_calls(); }

// ------------------------------------------------------------------ table

namespace {

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

void print_sites(const Record& record) {
  std::fprintf(stderr, "%10s %12s  %s\n", "calls", "seconds", "call site: what it runs");
  std::vector<TableRow> rows;
  for (const Site* site : sites_in_order(record)) {
    const ProblemRecord& all = record.sites.at(site).all;
    char numbers[48];
    std::snprintf(numbers, sizeof numbers, "%10lld %12.6f  ", static_cast<long long>(all.calls), all.seconds);
    const std::string rule = site->has_rule ? rule_json(*site).dump() : "not in the sites file";
    rows.push_back({all.seconds, numbers + site->name + ": " + rule});
  }
  print_rows(std::move(rows), "call sites");
}

}  // namespace

void print_table(const Record& record) {
  std::fprintf(stderr, "kintsugi: calls of BLAS under policy %s\n%10s %12s %12s  %s\n",
               policy_name(settings().policy), "calls", "seconds", "recomputed", "problem: what multiplied");
  std::fprintf(stderr, "%s\n", totals_row(record).c_str());
  std::vector<TableRow> rows;
  for (const auto& [key, problem] : record.problems) {
    const std::string why = problem.native_calls > 0 ? "; " + problem.why : "";
    rows.push_back({problem.seconds, row_of(problem, std::string(key.symbol) + " " + shape_of(key) + ": " +
                                                         programs_of(problem) + why)});
  }
  if (record.others.calls > 0)
    rows.push_back({record.others.seconds, row_of(record.others, "problems beyond the first 10000")});
  print_rows(std::move(rows), "problems");
  if (settings().sites) print_sites(record);
  if (const std::string uncovered = blas::uncovered_sentence(); !uncovered.empty())
    std::fprintf(stderr, "kintsugi: %s\n", uncovered.c_str());
}

// ------------------------------------------------------------------ at exit

namespace {

// Writes each site's last C to <ordinal>.npy in the folder that the sites file names. A file that cannot be
// written is a line on stderr.
void write_outputs(const Record& record) {
  if (!settings().sites || settings().sites->outputs.empty()) return;
  std::size_t ordinal = 0;
  for (const Site* site : sites_in_order(record)) {
    const SiteOutput& output = record.sites.at(site).output;
    const std::string path = settings().sites->outputs + "/" + output_name(++ordinal);
    if (output.is_empty() || write_file(path, output.npy())) continue;
    std::fprintf(stderr, "kintsugi: %s cannot be written: %s\n", path.c_str(), std::strerror(errno));
  }
}

// Says on stderr why no call may have come.
void print_no_call() {
  const std::string library = blas::loaded_blas();
  print_no_product(library.empty()
                       ? "it loaded no BLAS library, and one that is linked statically is not reached"
                       : library +
                             " is loaded, but no level-3 routine was called by name; kintsugi run "
                             "--blas --audit reaches libraries that take functions from a handle");
}

// Writes the report. A process that has made no call writes no file, and one without a call of level 3
// overwrites none: otherwise the process that starts the program would overwrite the program's report. A
// forked child writes only if its report has a file of its own. The settings are not read here, since that
// may end the program.
__attribute__((destructor)) void write_report_at_exit() {
  const std::string report = variable("KINTSUGI_REPORT");
  if (report.empty() || !has_own_report_file(report)) return;
  const std::lock_guard lock(record_mutex);
  const std::string uncovered = blas::uncovered_sentence();
  if (record_if_any() == nullptr && report == "-") {
    if (!uncovered.empty()) std::fprintf(stderr, "kintsugi: %s\n", uncovered.c_str());
    return print_no_call();
  }
  if (record_if_any() == nullptr && (uncovered.empty() || report_exists(report))) return;
  write_report(the_record());
  write_outputs(the_record());
}

}  // namespace

}  // namespace kintsugi::drop_in
