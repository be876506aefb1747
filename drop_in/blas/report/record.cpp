#include "record.hpp"

#include <cstdio>

#include "blas/mutexes.hpp"
#include "blas/next_blas/next.hpp"
#include "blas/settings.hpp"
#include "blas/sites/region.hpp"
#include "blas/sites/site.hpp"
#include "blas/sites/site_report.hpp"
#include "blas/uncovered/uncovered.hpp"
#include "common/report_file.hpp"
#include "report.hpp"

namespace kintsugi::blas {

namespace {

// Largest number of problems that are recorded one by one. It bounds the memory in programs that always
// multiply new shapes.
constexpr std::size_t most_problems = 10000;

// Never destroyed, since the report is written after the destructors of static objects have run.
Record* record = nullptr;

Record& the_record() {
  if (record == nullptr) record = new Record;
  return *record;
}

void add(ProblemRecord& problem, const CallOutcome& outcome) {
  problem.calls += outcome.calls;
  problem.seconds += outcome.seconds;
  problem.recomputed_elements += outcome.recomputed_elements;
  problem.calls_with_special_values += outcome.has_special_values ? outcome.calls : 0;
  problem.offloaded_calls += outcome.is_offloaded ? outcome.calls : 0;
  problem.failed_offloads += outcome.offload_failed ? outcome.calls : 0;
  problem.failed_calls += outcome.failed ? outcome.calls : 0;
  problem.why = outcome.why;
  if (outcome.only_scaled) {
    problem.scaled_calls += outcome.calls;
  } else if (outcome.is_native()) {
    problem.native_calls += outcome.calls;
  } else {
    problem.calls_of_program[outcome.program] += outcome.calls;
  }
}

double multiplications_of(const ProblemKey& key) {
  return static_cast<double>(key.m) * static_cast<double>(key.n) * static_cast<double>(key.k);
}

// Largest number of problems that are recorded one by one for each site.
constexpr std::size_t most_problems_of_site = 1000;

void add_to_site(SiteRecord& site, const ProblemKey& key, const CallOutcome& outcome) {
  add(site.all, outcome);
  site.multiplications += static_cast<double>(outcome.calls) * multiplications_of(key);
  if (!site.problems.contains(key) && site.problems.size() >= most_problems_of_site) return;
  add(site.problems[key], outcome);
}

}  // namespace

void record_call(const char* symbol, const Call& call, const CallOutcome& outcome) {
  const ProblemKey key{symbol,    call.routine, call.layout, call.side, call.uplo, call.op_a,
                       call.op_b, call.diag,    call.m,      call.n,    call.k};
  const std::lock_guard lock(record_mutex);
  Record& all = the_record();
  if (call.site != nullptr) add_to_site(all.sites[call.site], key, outcome);
  const bool is_new = !all.problems.contains(key);
  if (is_new && all.problems.size() >= most_problems) return add(all.others, outcome);
  ProblemRecord& problem = all.problems[key];
  add(problem, outcome);
  if (is_new && settings().explain) print_explanation(key, problem);
}

void record_matrices(const Call& call) {
  const std::lock_guard lock(record_mutex);
  Record& all = the_record();
  SiteRecord& site = all.sites[call.site];
  all.flow.add(*call.site, inputs_of(call), output_of(call), site.inputs);
  if (!settings().sites->outputs.empty()) site.output.save(call);
}

std::int64_t number_of_sample(const Site& site) {
  const std::lock_guard lock(record_mutex);
  return the_record().sites[&site].errors.number_of_sample();
}

void record_error(const Site& site, std::int64_t number, const drop_in::CallNorms& norms) {
  const std::lock_guard lock(record_mutex);
  the_record().sites[&site].errors.add(number, norms, settings().sites->error_samples);
}

void forget_record() {
  record = nullptr;
  forget_uncovered_calls();
}

namespace {

// Says on stderr why no call may have come.
void print_no_call() {
  const std::string library = loaded_blas();
  drop_in::print_no_product(
      "BLAS", library.empty() ? "it loaded no BLAS library, and one that is linked statically is not reached"
                              : library +
                                    " is loaded, but no level-3 routine was called by name; LD_AUDIT reaches "
                                    "libraries that take functions from a handle");
}

// Writes the report. A process that has made no call writes no file, and one without a call of level 3
// overwrites none: otherwise the process that starts the program would overwrite the program's report. A
// forked child writes only if its report has a file of its own. The settings are not read here, since that
// may end the program.
__attribute__((destructor)) void write_report_at_exit() {
  const std::string report = drop_in::variable("KINTSUGI_REPORT");
  if (report.empty() || !drop_in::has_own_report_file(report)) return;
  const std::lock_guard lock(record_mutex);
  const std::string uncovered = uncovered_sentence();
  if (record == nullptr && report == "-") {
    if (!uncovered.empty()) std::fprintf(stderr, "kintsugi: %s\n", uncovered.c_str());
    return print_no_call();
  }
  if (record == nullptr && (uncovered.empty() || drop_in::report_exists(report))) return;
  write_report(the_record());
  write_outputs(the_record());
}

}  // namespace

}  // namespace kintsugi::blas
