#include <kintsugi/cublas.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>

#include "answer.hpp"
#include "core/lock.hpp"
#include "core/record.hpp"
#include "core/settings.hpp"
#include "core/symbol.hpp"

namespace kintsugi {

namespace cublas {

namespace {

// Sampled calls of a problem: the first `first_samples` calls, then one in `sample_interval` calls.
constexpr std::int64_t first_samples = 4, sample_interval = 64;
// Calls of each side of a trial.
constexpr std::int64_t trial_samples = 5;
// Largest number of problems with a handle. A handle has a few kilobytes of device memory.
constexpr std::size_t max_handles = 256;

// Things that the samples of all problems share. Never destroyed, like the record.
struct Samples {
  std::vector<void*> free_events;
  std::size_t handles = 0;
  bool reads_at_exit = false;
};
Samples* samples = nullptr;  // guarded by record_mutex

Samples& the_samples() {
  if (samples == nullptr) samples = new Samples;
  return *samples;
}

// Adds the times of finished samples. Never waits for the device.
void read_samples(ProblemRecord& problem) {
  std::erase_if(problem.pending, [&](const PendingSample& sample) {
    const std::optional<double> seconds = seconds_between(sample.before, sample.after);
    if (!seconds) return false;
    if (problem.sampled_calls == 0) problem.first_seconds = *seconds;
    problem.sampled_seconds += *seconds;
    ++problem.sampled_calls;
    if (SpeedTrial::Side* const side = problem.trial.side(sample.timed)) side->add(*seconds);
    the_samples().free_events.insert(the_samples().free_events.end(), {sample.before, sample.after});
    return true;
  });
}

// Returns an event that is free, or a new one.
void* take_event() {
  std::vector<void*>& events = the_samples().free_events;
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
    kintsugi_report_summary summary = KINTSUGI_REPORT_SUMMARY_INIT;
    if (kintsugi_report_summarize(problem.handle, &summary) == KINTSUGI_SUCCESS)
      problem.last_execution = {.program = summary.scheme,
                                .recomputed_elements = summary.recomputed_elements,
                                .has_special_values = summary.items_with_special_values != 0};
    problem.has_execution = false;
  }
}

// Called by atexit(). The destructor that writes the report runs too late to read events, since the driver
// has shut down by then.
void read_executions_at_exit() {
  if (is_forked_child()) return;
  const std::lock_guard lock(record_mutex);
  if (record_if_any() != nullptr) read_executions();
}

// Registers read_executions_at_exit() once. It must be called after an execution, in which the driver and the
// library have registered their own functions. Functions of atexit() run in the reverse order of
// registration, so read_executions_at_exit() then runs before the driver shuts down.
void register_read_at_exit() {
  if (!the_samples().reads_at_exit) std::atexit(read_executions_at_exit);
  the_samples().reads_at_exit = true;
}

// Reads earlier samples of the problem, and gives it a handle if a report is wanted.
void prepare_sample(ProblemRecord& problem) {
  read_samples(problem);
  const bool needs_handle = problem.handle == nullptr && wants_report();
  if (needs_handle && the_samples().handles < max_handles &&
      kintsugi_create(&problem.handle) == KINTSUGI_SUCCESS)
    ++the_samples().handles;
}

// Says on stderr why no call may have come.
void print_no_call() {
  const std::string library = file_of(find_next(this_drop_in.known_function));
  print_no_product(library.empty()
                       ? "it loaded no libcublas, and one that is linked statically is not reached"
                       : library +
                             " is loaded, but no product of it was called by name; kintsugi run "
                             "--audit reaches programs that take functions from a handle");
}

// The settings are not read here, since that may end the program.
__attribute__((destructor)) void write_report_at_exit() {
  const std::string report = variable("KINTSUGI_REPORT");
  if (report.empty() || !has_own_report_file(report)) return;
  const std::lock_guard lock(record_mutex);
  if (const Record* const all = record_if_any(); all != nullptr) return write_report(*all);
  if (report == "-") print_no_call();
}

}  // namespace

namespace {

void choose(SpeedTrial& trial) {
  if (std::min(trial.emulation.read, trial.native.read) < trial_samples) return;
  trial.choice = trial.native.seconds < trial.emulation.seconds ? SpeedTrial::Choice::native
                                                                : SpeedTrial::Choice::emulation;
}

std::string slower_sentence(const SpeedTrial& trial) {
  char text[160];
  std::snprintf(
      text, sizeof text,
      "KINTSUGI_VERIFY_SPEED: the emulation took %.3g us and cuBLAS %.3g, the quickest of %d calls each",
      trial.emulation.seconds * 1e6, trial.native.seconds * 1e6, static_cast<int>(trial_samples) - 1);
  return text;
}

}  // namespace

SpeedTurn speed_turn(const char* symbol, const Call& call, void* stream) {
  const bool captured = is_captured(stream);
  const std::lock_guard lock(record_mutex);
  ProblemRecord* const problem = find_or_add(record_key(symbol, call));
  if (problem == nullptr) return {};
  read_samples(*problem);
  SpeedTrial& trial = problem->trial;
  if (trial.choice == SpeedTrial::Choice::open) choose(trial);
  const bool is_open = trial.choice == SpeedTrial::Choice::open;
  if (captured && is_open) trial.captures_emulation = true;
  if (captured && trial.captures_emulation) return {};
  if (trial.choice == SpeedTrial::Choice::native) return {Timed::native, slower_sentence(trial)};
  if (!is_open || std::min(trial.emulation.begun, trial.native.begun) >= trial_samples) return {};
  if (trial.emulation.begun <= trial.native.begun) return {Timed::emulation, ""};
  return {Timed::native, "KINTSUGI_VERIFY_SPEED times cuBLAS beside the emulation"};
}

CallSample::CallSample(const char* symbol, const Call& call, void* stream, Timed timed)
    : symbol_(symbol), call_(call), stream_(stream), timed_(timed) {
  if (!records_calls() || is_captured(stream)) return;
  try {
    const std::lock_guard lock(record_mutex);
    ProblemRecord* problem = find_or_add(record_key(symbol, call));
    if (problem == nullptr || problem->is_sampling) return;
    const bool is_of_trial = timed != Timed::neither && problem->trial.choice == SpeedTrial::Choice::open;
    if (!is_of_trial) timed_ = Timed::neither;
    if (!is_of_trial && problem->calls >= first_samples && problem->calls % sample_interval != 0) return;
    prepare_sample(*problem);
    event_before_ = take_event();
    event_after_ = take_event();
    if (event_before_ == nullptr || event_after_ == nullptr || !record_event(event_before_, stream)) {
      event_before_ = nullptr;
      return;
    }
    problem->is_sampling = true;
    handle_ = problem->handle;
    if (SpeedTrial::Side* const side = problem->trial.side(timed_)) ++side->begun;
  } catch (const std::exception&) {  // No memory: the call has no sample.
    event_before_ = nullptr;
  }
}

CallSample::~CallSample() {
  if (event_before_ == nullptr) return;
  try {
    const std::lock_guard lock(record_mutex);
    ProblemRecord* problem = find_or_add(record_key(symbol_, call_));
    if (problem == nullptr) return;
    problem->is_sampling = false;
    problem->has_execution |= was_executed_ && handle_ != nullptr;
    register_read_at_exit();
    const bool has_failed = timed_ == Timed::emulation && !was_executed_;
    if (record_event(event_after_, stream_))
      problem->pending.push_back(
          {.before = event_before_, .after = event_after_, .timed = has_failed ? Timed::neither : timed_});
  } catch (const std::exception&) {  // The record lacks the sample.
  }
}

}  // namespace cublas

void drop_in::forget_own_record() { cublas::samples = nullptr; }

// Returns the document on the calls so far. Waits for the device.
extern "C" __attribute__((visibility("default"))) kintsugi_status kintsugi_cublas_report(char* buffer,
                                                                                         size_t capacity,
                                                                                         size_t* needed) {
  if (buffer == nullptr && capacity > 0) return KINTSUGI_INVALID_ARGUMENT;
  drop_in::begin_to_record();
  try {
    const std::lock_guard lock(drop_in::record_mutex);
    cublas::read_executions();
    const std::string text = drop_in::report_document(drop_in::the_record());
    if (needed != nullptr) *needed = text.size() + 1;
    if (capacity == 0) return KINTSUGI_SUCCESS;
    const std::size_t written = std::min(text.size(), capacity - 1);
    std::copy_n(text.data(), written, buffer);
    buffer[written] = '\0';
    return KINTSUGI_SUCCESS;
  } catch (const std::exception&) {
    return KINTSUGI_OUT_OF_MEMORY;
  }
}

}  // namespace kintsugi
