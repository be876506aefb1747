// Texts of the record: the line of KINTSUGI_EXPLAIN, the document and the table of KINTSUGI_REPORT.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "record.hpp"

namespace kintsugi::cublas {

struct ProblemKey {
  std::string_view symbol;
  int op_a, op_b;
  std::int64_t m, n, k, count;

  auto operator<=>(const ProblemKey&) const = default;
};

struct ProblemRecord {
  std::int64_t calls = 0;
  std::int64_t native_calls = 0;
  std::int64_t failed_calls = 0;                            // of native_calls
  std::map<std::string, std::int64_t> calls_of_candidates;  // emulated calls
  std::map<std::string, std::int64_t> reasons;              // calls by the sentence on the choice
};

struct Record {
  std::map<ProblemKey, ProblemRecord> problems;
  ProblemRecord others;  // calls of problems beyond the most that are kept
};

void print_explanation(const ProblemKey& key, const CallOutcome& outcome);

// The document of docs/schema/cublas-report.schema.json.
std::string report_document(const Record& record);

// Writes to the file that KINTSUGI_REPORT names, or as a table to stderr.
void write_report(const Record& record);

}  // namespace kintsugi::cublas
