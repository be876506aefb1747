// Writes the record: the lines of KINTSUGI_EXPLAIN, the JSON document and the table of KINTSUGI_REPORT.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record.hpp"
#include "sites/site.hpp"

namespace kintsugi::drop_in {

using Json = nlohmann::ordered_json;

// ------------------------------------------------------------------ what each drop-in defines

// Letters and sizes of a problem, and what multiplied it, in the lines of tables.
std::string shape_of(const RecordKey& key);
std::string programs_of(const ProblemRecord& problem);

// Counts of a problem, or of several problems together, as members of the JSON document; a whole problem.
Json counts_json(const ProblemRecord& problem);
Json problem_json(const RecordKey& key, const ProblemRecord& problem);
// Completes a call site, which has its name and its place already.
void complete(Json& json, const Site& site, const SiteRecord& record);
// Returns further members of the document, which precede the sites.
Json further_members();

void print_table(const Record& record);

// Empties what the drop-in has recorded beside the record, in the child of a fork.
void forget_own_record();

// ------------------------------------------------------------------ what they share

void print_explanation(const RecordKey& key, const ProblemRecord& problem);

// Returns the document of docs/schema/blas-report.schema.json or cublas-report.schema.json.
std::string report_document(const Record& record);

// Writes the document to the file that KINTSUGI_REPORT names; %p stands for the process number. Prints a
// table on stderr instead if KINTSUGI_REPORT is "-". A file that cannot be written is a line on stderr.
void write_report(const Record& record);

// Returns the sites in the order of their ordinal numbers: by module, then by offset.
std::vector<const Site*> sites_in_order(const Record& record);

// Writes a file. The contents first go to a temporary file, which is then renamed, so that a full disk does
// not destroy the old file. Returns false and sets errno if the file cannot be written.
bool write_file(const std::string& path, const std::string& contents);

// A row of the table of KINTSUGI_REPORT=-.
struct TableRow {
  double seconds = 0;
  std::string text;
};
// Prints the 20 rows with the most time on stderr, and says how many more there are of `things`, such as
// "problems".
void print_rows(std::vector<TableRow> rows, const char* things);

// Prints the line of a process that has no call to report.
void print_no_product(const std::string& why);

// True if the file `name`, in which %p stands for the process number, exists.
bool report_exists(const std::string& name);

// False in a forked child if `name` has no %p, since the child would overwrite its parent's report.
bool has_own_report_file(const std::string& name);

}  // namespace kintsugi::drop_in
