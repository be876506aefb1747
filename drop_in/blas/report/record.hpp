// The record of calls behind KINTSUGI_EXPLAIN and KINTSUGI_REPORT.
#pragma once

#include <cstdint>
#include <string>

#include "blas/call.hpp"
#include "common/sites/call_errors.hpp"

namespace kintsugi::blas {

// Outcome of one call. For a routine of several products, `program` is the program of the largest product.
struct CallOutcome {
  std::string program;  // name of the emulation; "": the next BLAS or Kintsugi's native product multiplied
  bool only_scaled = false;  // nothing was multiplied: alpha = 0, or a size is 0
  std::string why;           // one sentence on the choice
  double seconds = 0;
  std::int64_t recomputed_elements = 0;
  bool has_special_values = false;
  bool is_offloaded = false;    // GPUs computed at least a part of C
  bool offload_failed = false;  // the host computed a part of C that was planned for GPUs
  bool failed = false;          // the emulation failed, and the next BLAS multiplied
  std::int64_t calls = 1;       // for a group of a batch: the number of its products

  bool is_native() const { return program.empty() && !only_scaled; }
};

// Records a call. With KINTSUGI_EXPLAIN=1, writes a line to stderr for the first call of each problem.
// `symbol` must live as long as the program.
void record_call(const char* symbol, const Call& call, const CallOutcome& outcome);

// Records the matrices of a call with a site: which sites' results the call read, and the C that it wrote.
// record_call() must have recorded the call.
void record_matrices(const Call& call);

// Counts a call of a site whose errors are measured. Returns the call's number if it must be measured, else
// -1.
std::int64_t number_of_sample(const Site& site);
// Records the error of that call.
void record_error(const Site& site, std::int64_t number, const drop_in::CallNorms& norms);

// Empties the record, in the child of a fork. The caller must hold record_mutex.
void forget_record();

}  // namespace kintsugi::blas
