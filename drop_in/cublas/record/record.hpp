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

// Measures a call's time on the device by two events, if the call is sampled: the first ones of a problem,
// then one of 64. Does nothing for other calls, if calls are not recorded, and under a capture.
class CallSample {
 public:
  // `symbol` lives as long as the program.
  CallSample(const char* symbol, const Call& call, void* stream);
  ~CallSample();
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
  void* first_ = nullptr;  // event before the call; nullptr: the call is not sampled
  void* second_ = nullptr;
  kintsugi_handle handle_ = nullptr;
  bool was_executed_ = false;  // with the handle
};

// Adds a call; with KINTSUGI_EXPLAIN=1 a problem's first one is a line on stderr. `symbol` lives as long as
// the program.
void record_call(const char* symbol, const Call& call, const CallOutcome& outcome);

// The document of the calls so far. Waits for the device.
std::string current_report();

// The child of a fork begins with an empty record; its caller holds record_mutex.
void forget_record();

}  // namespace kintsugi::cublas
