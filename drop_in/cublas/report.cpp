// The cuBLAS drop-in's own part of the report: the members of a problem and of a call site, and
// the table.
#include "core/record.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/settings.hpp"

namespace kintsugi::drop_in {

namespace {

const char* op_name(Op op) { return op == Op::n ? "N" : op == Op::t ? "T" : op == Op::c ? "C" : "other"; }

// Returns the estimated seconds of all calls: the number of calls times the mean time of the sampled calls.
// The first sample is left out if there are others. Returns null without a sample.
Json device_seconds(const ProblemRecord& problem) {
  if (problem.sampled_calls == 0) return {};
  const bool has_others = problem.sampled_calls > 1;
  const double seconds = problem.sampled_seconds - (has_others ? problem.first_seconds : 0);
  const auto samples = static_cast<double>(problem.sampled_calls - (has_others ? 1 : 0));
  return seconds / samples * static_cast<double>(problem.calls);
}

// Returns the estimated seconds of cuBLAS for all calls: measured if cuBLAS has answered all of them or was
// timed beside the emulation, else by the profile. Returns null if they are not known.
Json native_seconds(const ProblemRecord& problem) {
  if (problem.native_calls == problem.calls) return device_seconds(problem);
  if (problem.trial.native.seconds > 0)
    return problem.trial.native.seconds * static_cast<double>(problem.calls);
  if (problem.native_seconds == 0) return {};
  return problem.native_seconds * static_cast<double>(problem.calls);
}

Json execution_json(const std::optional<SampledExecution>& execution) {
  if (!execution) return {};
  return {{"program", execution->program},
          {"recomputed_elements", execution->recomputed_elements},
          {"special_values", execution->has_special_values}};
}

// Returns null until both sides have been timed.
Json speed_json(const SpeedTrial& trial) {
  if (trial.emulation.seconds == 0 || trial.native.seconds == 0) return {};
  const Json chosen = trial.choice == SpeedTrial::Choice::open     ? Json()
                      : trial.choice == SpeedTrial::Choice::native ? Json("cuBLAS")
                                                                   : Json("emulation");
  return {{"emulation_seconds", trial.emulation.seconds},
          {"cublas_seconds", trial.native.seconds},
          {"chosen", chosen}};
}

// Returns the reason of the most calls that cuBLAS answered, and how many others there are.
std::string main_reason(const ProblemRecord& problem) {
  const auto fewer = [](const auto& one, const auto& other) { return one.second < other.second; };
  const auto most = std::max_element(problem.reasons.begin(), problem.reasons.end(), fewer);
  if (problem.native_calls == 0 || most == problem.reasons.end()) return "";
  const std::size_t others = problem.reasons.size() - 1;
  return "; " + most->first + (others == 0 ? "" : " (and " + std::to_string(others) + " other reasons)");
}

TableRow row_of(const ProblemRecord& problem, const Json& seconds, const std::string& text) {
  char numbers[80];
  std::snprintf(numbers, sizeof numbers, "%10lld %10lld %10lld ", static_cast<long long>(problem.calls),
                static_cast<long long>(problem.calls - problem.native_calls),
                static_cast<long long>(problem.failed_calls));
  char time[24] = "-";
  if (!seconds.is_null()) std::snprintf(time, sizeof time, "%.4g", seconds.get<double>());
  char column[24];
  std::snprintf(column, sizeof column, "%12s  ", time);
  return {seconds.is_null() ? 0 : seconds.get<double>(), std::string(numbers) + column + text};
}

}  // namespace

std::string shape_of(const RecordKey& key) {
  return std::string(op_name(key.op_a)) + " " + op_name(key.op_b) + ", m = " + std::to_string(key.m) +
         ", n = " + std::to_string(key.n) + ", k = " + std::to_string(key.k) + ", batch of " +
         std::to_string(key.count);
}

std::string programs_of(const ProblemRecord& problem) {
  std::string names;
  for (const auto& [name, calls] : problem.calls_of_program) names += (names.empty() ? "" : "; ") + name;
  if (problem.native_calls > 0) names += names.empty() ? "cuBLAS" : "; cuBLAS";
  return names;
}

Json counts_json(const ProblemRecord& problem) {
  Json emulated = Json::object(), reasons = Json::object();
  for (const auto& [name, calls] : problem.calls_of_program) emulated[name] = calls;
  for (const auto& [why, calls] : problem.reasons) reasons[why] = calls;
  return {{"calls", problem.calls},
          {"native_calls", problem.native_calls},
          {"emulated_calls", emulated},
          {"failed_calls", problem.failed_calls},
          {"reasons", reasons}};
}

Json problem_json(const RecordKey& key, const ProblemRecord& problem) {
  Json json = {{"symbol", std::string(key.symbol)},
               {"op_a", op_name(key.op_a)},
               {"op_b", op_name(key.op_b)},
               {"m", key.m},
               {"n", key.n},
               {"k", key.k},
               {"batch_count", key.count}};
  if (!key.site.empty()) json["site"] = std::string(key.site);
  if (!key.type.empty()) json["type"] = std::string(key.type);
  json.update(counts_json(problem));
  json["device_seconds"] = device_seconds(problem);
  json["estimated_native_seconds"] = native_seconds(problem);
  json["sampled_calls"] = problem.sampled_calls;
  json["last_sampled_execution"] = execution_json(problem.last_execution);
  if (settings().verifies_speed) json["speed"] = speed_json(problem.trial);
  return json;
}

void complete(Json& json, const Site& site, const SiteRecord& record) {
  json["callers"] = callers_json(site.callers);
  json["inputs"] = inputs_json(record.inputs);
  json["may_read"] = may_read_json(site.source);
  json["error"] = record.errors.json();
}

Json further_members() { return Json::object(); }

void print_table(const Record& record) {
  std::fprintf(stderr, "kintsugi: calls of cuBLAS under policy %s\n%10s %10s %10s %12s  %s\n",
               policy_name(settings().policy), "calls", "emulated", "failed", "seconds",
               "problem: what multiplied");
  ProblemRecord all;
  Json all_seconds;
  std::vector<TableRow> rows;
  const auto add = [&](const ProblemRecord& problem, const std::string& text) {
    all.calls += problem.calls;
    all.native_calls += problem.native_calls;
    all.failed_calls += problem.failed_calls;
    const Json seconds = device_seconds(problem);
    rows.push_back(row_of(problem, seconds, text));
    if (!seconds.is_null())
      all_seconds = rows.back().seconds + (all_seconds.is_null() ? 0 : all_seconds.get<double>());
  };
  for (const auto& [key, problem] : record.problems)
    add(problem,
        std::string(key.symbol) + " " + shape_of(key) + ": " + programs_of(problem) + main_reason(problem));
  if (record.others.calls > 0) add(record.others, "problems beyond the first 10000");
  std::fprintf(stderr, "%s\n", row_of(all, all_seconds, "all calls").text.c_str());
  print_rows(std::move(rows), "problems");
}

}  // namespace kintsugi::drop_in
