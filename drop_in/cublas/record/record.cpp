#include "record.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>

#include "common/lock.hpp"
#include "common/report_file.hpp"
#include "cublas/device/driver.hpp"
#include "cublas/mutexes.hpp"
#include "cublas/real.hpp"
#include "cublas/record/report.hpp"
#include "cublas/settings.hpp"
#include "cublas/sites/call_regions.hpp"
#include "cublas/sites/site.hpp"

namespace kintsugi::cublas {

namespace {

// Largest number of problems that are recorded one by one. It bounds the memory in programs that always
// multiply new shapes.
constexpr std::size_t max_problems = 10000;
// Sampled calls of a problem: the first `first_samples` calls, then one in `sample_interval` calls.
constexpr std::int64_t first_samples = 4, sample_interval = 64;
// Largest number of problems with a handle. A handle has a few kilobytes of device memory.
constexpr std::size_t max_handles = 256;

// Never destroyed, since the report is written after static objects were destroyed.
Record* record = nullptr;
constinit std::atomic<bool> report_was_requested = false;  // by kintsugi_cublas_report()

Record& the_record() {
  if (record == nullptr) record = new Record;
  return *record;
}

std::string_view type_name(const std::optional<kintsugi_type>& type) {
  if (!type) return {};
  switch (*type) {
    case KINTSUGI_F32: return "fp32";
    case KINTSUGI_F64: return "fp64";
    case KINTSUGI_C32: return "c32";
    case KINTSUGI_C64: return "c64";
    default: return {};
  }
}

ProblemKey key_of(const char* symbol, const Call& call) {
  return {.symbol = symbol,
          .op_a = call.op_a,
          .op_b = call.op_b,
          .m = call.m,
          .n = call.n,
          .k = call.k,
          .count = call.count,
          .site = call.site != nullptr ? std::string_view(call.site->name) : std::string_view(),
          .type = type_name(call.type)};
}

// Returns the problem's record, and adds it if there is none. Returns nullptr if there are too many records.
ProblemRecord* find_or_add(const ProblemKey& key) {
  Record& all = the_record();
  const auto found = all.problems.find(key);
  if (found != all.problems.end()) return &found->second;
  return all.problems.size() < max_problems ? &all.problems[key] : nullptr;
}

void count_call(ProblemRecord& problem, const CallOutcome& outcome) {
  ++problem.calls;
  ++problem.reasons[outcome.why];
  if (outcome.failed) ++problem.failed_calls;
  if (outcome.candidates.empty()) {
    ++problem.native_calls;
  } else {
    ++problem.calls_of_candidates[outcome.candidates];
  }
}

// Adds the times of finished samples. Never waits for the device.
void read_samples(ProblemRecord& problem) {
  std::erase_if(problem.pending, [&](const PendingSample& sample) {
    const std::optional<double> seconds = seconds_between(sample.before, sample.after);
    if (!seconds) return false;
    if (problem.sampled_calls == 0) problem.first_seconds = *seconds;
    problem.sampled_seconds += *seconds;
    ++problem.sampled_calls;
    the_record().free_events.insert(the_record().free_events.end(), {sample.before, sample.after});
    return true;
  });
}

// Returns an event that is free, or a new one.
void* take_event() {
  std::vector<void*>& events = the_record().free_events;
  if (events.empty()) return make_event();
  void* event = events.back();
  events.pop_back();
  return event;
}

// Reads the pending samples and the reports of sampled emulations. Reading a report waits for the device.
void read_executions() {
  for (auto& [key, problem] : the_record().problems) {
    read_samples(problem);
    if (!problem.has_execution || problem.is_sampling) continue;
    problem.last_execution = drop_in::summary_of(problem.handle);
    problem.has_execution = false;
  }
}

// Called by atexit(). The destructor that writes the report runs too late to read events, since the driver
// has shut down by then.
void read_executions_at_exit() {
  if (drop_in::is_forked_child()) return;
  const std::lock_guard lock(record_mutex);
  if (record != nullptr) read_executions();
}

// Registers read_executions_at_exit() once. It must be called after an execution, in which the driver and the
// library have registered their own functions. Functions of atexit() run in the reverse order of
// registration, so read_executions_at_exit() then runs before the driver shuts down.
void register_read_at_exit() {
  if (!the_record().reads_at_exit) std::atexit(read_executions_at_exit);
  the_record().reads_at_exit = true;
}

// Reads earlier samples of the problem, and gives it a handle if a report is wanted.
void prepare_sample(ProblemRecord& problem) {
  Record& all = the_record();
  read_samples(problem);
  const bool needs_handle = problem.handle == nullptr && (report_was_requested || !settings().report.empty());
  if (needs_handle && all.handles < max_handles && kintsugi_create(&problem.handle) == KINTSUGI_SUCCESS)
    ++all.handles;
}

// Says on stderr why no call may have come.
void print_no_call() {
  const std::string library = file_of(find_real("cublasCreate_v2"));
  drop_in::print_no_product(
      "cuBLAS", library.empty() ? "it loaded no libcublas, and one that is linked statically is not reached"
                                : library +
                                      " is loaded, but no product of it was called by name; kintsugi run "
                                      "--audit reaches programs that take functions from a handle");
}

// The settings are not read here, since that may end the program.
__attribute__((destructor)) void write_report_at_exit() {
  const std::string report = drop_in::variable("KINTSUGI_REPORT");
  if (report.empty() || !drop_in::has_own_report_file(report)) return;
  const std::lock_guard lock(record_mutex);
  if (record != nullptr) return write_report(*record);
  if (report == "-") print_no_call();
}

}  // namespace

bool records_calls() {
  return settings().records_calls() || report_was_requested.load(std::memory_order_relaxed);
}
void begin_to_record() { report_was_requested = true; }

CallSample::CallSample(const char* symbol, const Call& call, void* stream)
    : symbol_(symbol), call_(call), stream_(stream) {
  if (!records_calls() || is_captured(stream)) return;
  try {
    const std::lock_guard lock(record_mutex);
    ProblemRecord* problem = find_or_add(key_of(symbol, call));
    const bool is_sampled = problem != nullptr && !problem->is_sampling &&
                            (problem->calls < first_samples || problem->calls % sample_interval == 0);
    if (!is_sampled) return;
    prepare_sample(*problem);
    event_before_ = take_event();
    event_after_ = take_event();
    if (event_before_ == nullptr || event_after_ == nullptr || !record_event(event_before_, stream)) {
      event_before_ = nullptr;
      return;
    }
    problem->is_sampling = true;
    handle_ = problem->handle;
  } catch (const std::exception&) {  // No memory: the call has no sample.
    event_before_ = nullptr;
  }
}

CallSample::~CallSample() {
  if (event_before_ == nullptr) return;
  try {
    const std::lock_guard lock(record_mutex);
    ProblemRecord* problem = find_or_add(key_of(symbol_, call_));
    if (problem == nullptr) return;
    problem->is_sampling = false;
    problem->has_execution |= was_executed_ && handle_ != nullptr;
    register_read_at_exit();
    if (record_event(event_after_, stream_))
      problem->pending.push_back({.before = event_before_, .after = event_after_});
  } catch (const std::exception&) {  // The record lacks the sample.
  }
}

void record_call(const char* symbol, const Call& call, const CallOutcome& outcome) {
  const ProblemKey key = key_of(symbol, call);
  const std::lock_guard lock(record_mutex);
  if (call.site != nullptr)
    the_record().flow.add(*call.site, inputs_of(call, outcome.reads_c), output_of(call),
                          the_record().sites[call.site].inputs);
  ProblemRecord* problem = find_or_add(key);
  if (problem == nullptr) return count_call(the_record().others, outcome);
  const bool is_first = problem->calls == 0;
  count_call(*problem, outcome);
  if (is_first && settings().explain) print_explanation(key, outcome);
}

std::int64_t number_of_sample(const Site& site) {
  const std::lock_guard lock(record_mutex);
  return the_record().sites[&site].errors.number_of_sample();
}

void record_error(const Site& site, std::int64_t number, const drop_in::CallNorms& norms) {
  const std::lock_guard lock(record_mutex);
  the_record().sites[&site].errors.add(number, norms, settings().sites->error_samples);
}

std::string current_report() {
  const std::lock_guard lock(record_mutex);
  read_executions();
  return report_document(the_record());
}

void forget_record() { record = nullptr; }

}  // namespace kintsugi::cublas
