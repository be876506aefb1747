// The record of calls behind KINTSUGI_EXPLAIN, KINTSUGI_REPORT and kintsugi_cublas_report().
#pragma once

#include <kintsugi/kintsugi.h>

#include <string>

#include "cublas/call.hpp"

namespace kintsugi::cublas {

struct CallOutcome {
  std::string candidates;  // names of the programs that the device selects from; "": cuBLAS multiplied
  std::string why;         // one sentence on the choice
  bool failed = false;     // the emulation failed, and cuBLAS multiplied
};

// True if calls are recorded: the settings say so, or the program has asked for a report.
bool records_calls();
void begin_to_record();

// Measures a call's time on the device by two events, if the call is sampled: of a problem the first calls
// are, then one of 64. Does nothing for other calls, if calls are not recorded, and under a capture.
class CallSample {
 public:
  // Enqueues the first event. `symbol` must live as long as the program.
  CallSample(const char* symbol, const Call& call, void* stream);
  ~CallSample();  // enqueues the second event
  CallSample(const CallSample&) = delete;
  CallSample& operator=(const CallSample&) = delete;

  // Handle of the problem, whose report will describe this execution; nullptr for calls that are not sampled.
  // The handle's first execution waits for the device.
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

// Adds a call to the record; with KINTSUGI_EXPLAIN=1 prints a line on stderr for the first call of a problem.
// `symbol` must live as long as the program.
void record_call(const char* symbol, const Call& call, const CallOutcome& outcome);

// Returns the document of the calls so far. Waits for the device.
std::string current_report();

// Empties the record in the child of a fork; the caller holds record_mutex.
void forget_record();

}  // namespace kintsugi::cublas
