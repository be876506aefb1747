// Writes the record: the lines of KINTSUGI_EXPLAIN, the JSON document and the table of KINTSUGI_REPORT.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "blas/call.hpp"
#include "blas/sites/output.hpp"
#include "common/sites/call_errors.hpp"
#include "common/sites/flow.hpp"

namespace kintsugi::blas {

struct ProblemKey {
  std::string_view symbol;
  Routine routine;  // decides which of the following members are arguments of the call
  Layout layout;
  Side side;
  Uplo uplo;
  Op op_a, op_b;
  Diag diag;
  std::int64_t m, n, k;

  auto operator<=>(const ProblemKey&) const = default;
};

struct ProblemRecord {
  std::int64_t calls = 0;
  std::int64_t native_calls = 0;
  std::int64_t scaled_calls = 0;  // nothing was multiplied: alpha = 0, or a size is 0
  std::map<std::string, std::int64_t> calls_of_program;
  std::int64_t failed_calls = 0;     // native calls whose emulation had failed
  std::int64_t offloaded_calls = 0;  // GPUs computed at least a part of C
  std::int64_t failed_offloads = 0;  // the host computed a part of C that was planned for GPUs
  std::int64_t recomputed_elements = 0;
  std::int64_t calls_with_special_values = 0;
  double seconds = 0;
  std::string why;
};

// Calls of one call site.
struct SiteRecord {
  ProblemRecord all;
  double multiplications = 0;  // sum of m n k over all calls
  std::map<ProblemKey, ProblemRecord> problems;
  drop_in::SiteInputs inputs;
  SiteOutput output;  // C of the last call; empty unless outputs are recorded
  drop_in::CallErrors errors;
};

struct Record {
  std::map<ProblemKey, ProblemRecord> problems;
  ProblemRecord others;  // calls of the problems that `problems` has no room for
  std::map<const Site*, SiteRecord> sites;
  drop_in::Flow flow;
};

void print_explanation(const ProblemKey& key, const ProblemRecord& problem);

// Returns the counts of a problem, or of several problems together, as members of the JSON document.
nlohmann::ordered_json counts_json(const ProblemRecord& problem);
nlohmann::ordered_json problem_json(const ProblemKey& key, const ProblemRecord& problem);

// Writes the JSON document to the file that KINTSUGI_REPORT names; %p stands for the process number. Writes a
// table to stderr instead if KINTSUGI_REPORT is "-". A file that cannot be written is a line on stderr.
void write_report(const Record& record);

}  // namespace kintsugi::blas
