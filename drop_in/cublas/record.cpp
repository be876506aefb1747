#include "record.hpp"

#include <cstddef>
#include <mutex>

#include "common/report_file.hpp"
#include "mutexes.hpp"
#include "report.hpp"
#include "settings.hpp"

namespace kintsugi::cublas {

namespace {

// The maximum bounds the memory of programs that multiply ever new shapes.
constexpr std::size_t max_problems = 10000;

// Never destroyed, since the report is written after static objects have been.
Record* record = nullptr;

Record& the_record() {
  if (record == nullptr) record = new Record;
  return *record;
}

void add(ProblemRecord& problem, const CallOutcome& outcome) {
  ++problem.calls;
  ++problem.reasons[outcome.why];
  if (outcome.failed) ++problem.failed_calls;
  if (outcome.candidates.empty()) {
    ++problem.native_calls;
  } else {
    ++problem.calls_of_candidates[outcome.candidates];
  }
}

__attribute__((destructor)) void write_report_at_exit() {
  if (record == nullptr || settings().report.empty()) return;
  if (!drop_in::has_own_report_file(settings().report)) return;
  const std::lock_guard lock(record_mutex);
  write_report(*record);
}

}  // namespace

void record_call(const char* symbol, const Call& call, const CallOutcome& outcome) {
  const ProblemKey key{symbol, call.op_a, call.op_b, call.m, call.n, call.k, call.count};
  const std::lock_guard lock(record_mutex);
  Record& all = the_record();
  const bool is_new = !all.problems.contains(key);
  if (is_new && all.problems.size() >= max_problems) return add(all.others, outcome);
  ProblemRecord& problem = all.problems[key];
  add(problem, outcome);
  if (is_new && settings().explain) print_explanation(key, outcome);
}

void forget_record() { record = nullptr; }

}  // namespace kintsugi::cublas
