// The record of calls behind KINTSUGI_EXPLAIN and KINTSUGI_REPORT.
#pragma once

#include <string>

#include "call.hpp"

namespace kintsugi::cublas {

struct CallOutcome {
  std::string candidates;  // names of the programs that the device selects from; "": cuBLAS multiplied
  std::string why;         // one sentence on the choice
  bool failed = false;     // the emulation failed, and cuBLAS multiplied
};

// Adds a call; with KINTSUGI_EXPLAIN=1 a problem's first one is a line on stderr. `symbol` lives as long as
// the program.
void record_call(const char* symbol, const Call& call, const CallOutcome& outcome);

// The child of a fork begins with an empty record; its caller holds record_mutex.
void forget_record();

}  // namespace kintsugi::cublas
