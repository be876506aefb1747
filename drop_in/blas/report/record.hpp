// The record of calls behind KINTSUGI_EXPLAIN and KINTSUGI_REPORT.
#pragma once

#include <cstdint>
#include <string>

#include "blas/call.hpp"

namespace kintsugi::blas {

// Outcome of one call. That of a composed routine names the program of its largest product.
struct CallOutcome {
  std::string program;  // name of the emulation; "": the next BLAS or the library's native product multiplied
  bool only_scaled = false;  // nothing was multiplied: alpha = 0, or a size is 0
  std::string why;           // one sentence on the choice
  double seconds = 0;
  std::int64_t recomputed_elements = 0;
  bool has_special_values = false;
  bool is_offloaded = false;    // GPUs computed C, or a part of it
  bool offload_failed = false;  // the host computed C, or a part of it, though GPUs should have
  bool failed = false;          // the emulation failed, and the next BLAS multiplied
  std::int64_t calls = 1;       // equal products of a batch count as calls each

  bool is_native() const { return program.empty() && !only_scaled; }
};

// Adds a call; with KINTSUGI_EXPLAIN=1 a problem's first one is a line on stderr. `symbol` lives as long as
// the program.
void record_call(const char* symbol, const Call& call, const CallOutcome& outcome);

// Records, for a call with a site, whose results it read and what it wrote; its caller has recorded the call.
void record_matrices(const Call& call);

// The child of a fork begins with an empty record; its caller holds record_mutex.
void forget_record();

}  // namespace kintsugi::blas
