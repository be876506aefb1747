// Writes the record: the lines of KINTSUGI_EXPLAIN, the JSON document and the table of KINTSUGI_REPORT.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/documents.hpp"
#include "common/sites/call_errors.hpp"
#include "common/sites/flow.hpp"
#include "cublas/record/record.hpp"

namespace kintsugi::cublas {

struct ProblemKey {
  std::string_view symbol;
  int op_a, op_b;
  std::int64_t m, n, k, count;
  std::string_view site;  // name of the call site; "" without KINTSUGI_SITES
  std::string_view type;  // type of the matrices: fp32, fp64, c32 or c64; "": another type

  auto operator<=>(const ProblemKey&) const = default;
};

// Events before and after a sampled call whose time has not been read yet.
struct PendingSample {
  void* before;
  void* after;
};

struct ProblemRecord {
  std::int64_t calls = 0;
  std::int64_t native_calls = 0;
  std::int64_t failed_calls = 0;                            // native calls whose emulation had failed
  std::map<std::string, std::int64_t> calls_of_candidates;  // emulated calls by the names of the candidates
  std::map<std::string, std::int64_t> reasons;              // all calls by the sentence on the choice

  std::int64_t sampled_calls = 0;  // calls whose time on the device was read
  double sampled_seconds = 0;
  double first_seconds = 0;  // time of the first sampled call, which may include the loading of kernels
  std::vector<PendingSample> pending;
  bool is_sampling = false;          // true: a sampled call is under way
  kintsugi_handle handle = nullptr;  // executes the sampled emulations; nullptr: no report is wanted
  bool has_execution = false;        // true: the report of the handle's last execution has not been read yet
  std::optional<drop_in::ExecutionSummary> last_execution;
};

// Errors and inputs of one call site.
struct SiteRecord {
  drop_in::CallErrors errors;
  drop_in::SiteInputs inputs;
};

struct Record {
  std::map<ProblemKey, ProblemRecord> problems;
  std::map<const Site*, SiteRecord> sites;
  drop_in::Flow flow;
  ProblemRecord others;  // calls of the problems that `problems` has no room for
  std::vector<void*> free_events;
  std::size_t handles = 0;
  bool reads_at_exit = false;
};

void print_explanation(const ProblemKey& key, const CallOutcome& outcome);

// Returns the document of docs/schema/cublas-report.schema.json.
std::string report_document(const Record& record);

// Writes the report to the file that KINTSUGI_REPORT names; for "-" prints a table on stderr.
void write_report(const Record& record);

}  // namespace kintsugi::cublas
