// The record of calls behind KINTSUGI_EXPLAIN, KINTSUGI_REPORT and kintsugi_cublas_report().
#pragma once

#include <kintsugi/kintsugi.h>

#include <cstdint>
#include <string>

#include "common/sites/call_errors.hpp"
#include "cublas/call.hpp"

namespace kintsugi::cublas {

struct CallOutcome {
  std::string candidates;  // names of the programs that the device selects from; "": cuBLAS multiplied
  std::string why;         // one sentence on the decision
  bool failed = false;     // the emulation failed, and cuBLAS multiplied
  bool reads_c = true;     // beta is not known to be 0
};

// True if calls are recorded: the settings say so, or the program has asked for a report.
bool records_calls();
void begin_to_record();

// Measures the time of a sampled call on the device, by two events. Of each problem the first 4 calls and
// then every 64th call are sampled. No call is sampled if calls are not recorded, or while the stream is
// captured.
class CallSample {
 public:
  // Enqueues the first event. `symbol` must live as long as the program.
  CallSample(const char* symbol, const Call& call, void* stream);
  ~CallSample();  // enqueues the second event
  CallSample(const CallSample&) = delete;
  CallSample& operator=(const CallSample&) = delete;

  // Returns the handle with which a sampled emulation must be executed, so that the handle's report describes
  // it; nullptr for other calls. The handle's first execution waits for the device.
  kintsugi_handle handle() const { return handle_; }
  void note_execution() { was_executed_ = true; }

 private:
  const char* symbol_;
  const Call& call_;
  void* stream_;
  void* event_before_ = nullptr;  // nullptr: the call is not sampled
  void* event_after_ = nullptr;
  kintsugi_handle handle_ = nullptr;
  bool was_executed_ = false;  // true: a plan was executed with the handle
};

// Records a call. With KINTSUGI_EXPLAIN=1, prints a line on stderr for the first call of each problem.
// `symbol` must live as long as the program.
void record_call(const char* symbol, const Call& call, const CallOutcome& outcome);

// Counts a call of a site whose errors are measured. Returns the call's number if it must be measured, else
// -1.
std::int64_t number_of_sample(const Site& site);
// Records the error of that call.
void record_error(const Site& site, std::int64_t number, const drop_in::CallNorms& norms);

// Returns the JSON document on the calls so far. Waits for the device.
std::string current_report();

// Empties the record, in the child of a fork. The caller must hold record_mutex.
void forget_record();

}  // namespace kintsugi::cublas
