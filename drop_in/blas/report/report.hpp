// Texts of the record: the line of KINTSUGI_EXPLAIN, the document and the table of KINTSUGI_REPORT.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "blas/call.hpp"
#include "blas/sites/flow.hpp"
#include "blas/sites/output.hpp"

namespace kintsugi::blas {

struct ProblemKey {
  std::string_view symbol;
  Routine routine;  // tells which of the next members are arguments
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
  std::int64_t scaled_calls = 0;  // at most beta C was formed, by the library
  std::map<std::string, std::int64_t> calls_of_program;
  std::int64_t failed_calls = 0;     // those of native_calls that failed
  std::int64_t offloaded_calls = 0;  // GPUs computed C, or a part of it
  std::int64_t failed_offloads = 0;  // the host computed C, or a part of it, though GPUs should have
  std::int64_t recomputed_elements = 0;
  std::int64_t calls_with_special_values = 0;
  double seconds = 0;
  std::string why;
};

// Calls of one call site.
struct SiteRecord {
  ProblemRecord all;
  double multiplications = 0;  // m n k of every call together
  std::map<ProblemKey, ProblemRecord> problems;
  SiteInputs inputs;
  SiteOutput output;  // C of the last call, where outputs are recorded
};

struct Record {
  std::map<ProblemKey, ProblemRecord> problems;
  ProblemRecord others;  // calls of problems beyond the most that are kept
  std::map<const Site*, SiteRecord> sites;
  Flow flow;
};

void print_explanation(const ProblemKey& key, const ProblemRecord& problem);

// Members of the document that a set of calls and one problem have.
nlohmann::ordered_json counts_json(const ProblemRecord& problem);
nlohmann::ordered_json problem_json(const ProblemKey& key, const ProblemRecord& problem);

// Writes to the file that KINTSUGI_REPORT names, %p being the process's number, or as a table to stderr; one
// line on stderr if the file cannot be written.
void write_report(const Record& record);

}  // namespace kintsugi::blas
