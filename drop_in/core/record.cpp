#include "record.hpp"

#include <mutex>

#include "lock.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "sites/site.hpp"

namespace kintsugi::drop_in {

namespace {

// Largest numbers of problems that are recorded one by one. They bound the memory in programs that always
// multiply new shapes.
constexpr std::size_t most_problems = 10000, most_problems_of_site = 1000;

Record* record = nullptr;

std::string_view type_name(const Call& call) {
  constexpr std::string_view names[] = {"fp32", "fp64", "c32", "c64"};
  return call.is_supported ? names[call.type] : std::string_view();
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
  if (this_drop_in.is_cublas) problem.reasons[outcome.why] += outcome.calls;
  if (outcome.only_scaled) {
    problem.scaled_calls += outcome.calls;
  } else if (outcome.is_native()) {
    problem.native_calls += outcome.calls;
  } else {
    problem.calls_of_program[outcome.program] += outcome.calls;
  }
}

void add_to_site(SiteRecord& site, const RecordKey& key, const CallOutcome& outcome) {
  add(site.all, outcome);
  site.multiplications += static_cast<double>(outcome.calls) * static_cast<double>(key.m) *
                          static_cast<double>(key.n) * static_cast<double>(key.k);
  if (!site.problems.contains(key) && site.problems.size() >= most_problems_of_site) return;
  add(site.problems[key], outcome);
}

}  // namespace

RecordKey record_key(const char* symbol, const Call& call) {
  const bool has_site = this_drop_in.is_cublas && call.site != nullptr;
  return {.symbol = symbol,
          .routine = call.routine,
          .layout = call.layout,
          .side = call.side,
          .uplo = call.uplo,
          .op_a = call.op_a,
          .op_b = call.op_b,
          .diag = call.diag,
          .m = call.m,
          .n = call.n,
          .k = call.k,
          .count = call.count,
          .site = has_site ? std::string_view(call.site->name) : std::string_view(),
          .type = type_name(call)};
}

void record_call(const char* symbol, const Call& call, const CallOutcome& outcome) {
  const RecordKey key = record_key(symbol, call);
  const std::lock_guard lock(record_mutex);
  if (call.site != nullptr) add_to_site(the_record().sites[call.site], key, outcome);
  ProblemRecord* const problem = find_or_add(key);
  if (problem == nullptr) return add(the_record().others, outcome);
  const bool is_first = problem->calls == 0;
  add(*problem, outcome);
  if (is_first && settings().explain) print_explanation(key, *problem);
}

void record_matrices(const Call& call, bool reads_c) {
  const std::lock_guard lock(record_mutex);
  SiteRecord& site = the_record().sites[call.site];
  the_record().flow.add(*call.site, inputs_of(call, reads_c), output_of(call), site.inputs);
  if (!settings().sites->outputs.empty()) site.output.save(call);
}

std::int64_t number_of_sample(const Site& site) {
  const std::lock_guard lock(record_mutex);
  return the_record().sites[&site].errors.number_of_sample();
}

void record_error(const Site& site, std::int64_t number, const CallNorms& norms) {
  const std::lock_guard lock(record_mutex);
  the_record().sites[&site].errors.add(number, norms, settings().sites->error_samples);
}

Record* record_if_any() { return record; }

Record& the_record() {
  if (record == nullptr) record = new Record;
  return *record;
}

ProblemRecord* find_or_add(const RecordKey& key) {
  Record& all = the_record();
  const auto found = all.problems.find(key);
  if (found != all.problems.end()) return &found->second;
  return all.problems.size() < most_problems ? &all.problems[key] : nullptr;
}

void forget_record() {
  record = nullptr;
  forget_own_record();
}

}  // namespace kintsugi::drop_in
