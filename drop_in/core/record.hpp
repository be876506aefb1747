// The record of calls, and what is written of it: the lines of KINTSUGI_EXPLAIN and KINTSUGI_VERBOSE, the
// JSON document, the page and the table of KINTSUGI_REPORT, the document of kintsugi_cublas_report().
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "call.hpp"
#include "sites/site.hpp"
#include "sites/site_record.hpp"

namespace kintsugi::drop_in {

// Outcome of one call. For a routine of several products, `program` is the program of the largest product. On
// a device it names the programs from which the device selects.
struct CallOutcome {
  std::string program;       // "": the hidden library or Kintsugi's native product multiplied
  bool only_scaled = false;  // nothing was multiplied: alpha = 0, or a size is 0
  std::string why;           // one sentence on the decision
  double seconds = 0;
  double native_seconds = 0;  // in cuBLAS: of a native product, estimated by the profile; 0: not known
  std::int64_t recomputed_elements = 0;
  bool has_special_values = false;
  bool is_offloaded = false;    // GPUs computed at least a part of C
  bool offload_failed = false;  // the host computed a part of C that was planned for GPUs
  bool failed = false;          // the emulation failed, and the hidden library multiplied
  std::int64_t calls = 1;       // for a group of a BLAS batch: the number of its products

  bool is_native() const { return program.empty() && !only_scaled; }
};

struct RecordKey {
  std::string_view symbol;
  Routine routine;  // decides which of the following members are arguments of the call
  Layout layout;
  Side side;
  Uplo uplo;
  Op op_a, op_b;
  Diag diag;
  std::int64_t m, n, k, count;
  std::string_view site;  // in cuBLAS: name of the call site; "" without KINTSUGI_SITES
  std::string_view type;  // fp32, fp64, c32 or c64; "": another type

  auto operator<=>(const RecordKey&) const = default;
};
// `symbol` must live as long as the program.
RecordKey record_key(const char* symbol, const Call& call);

// Last execution of a problem that cuBLAS's drop-in sampled.
struct SampledExecution {
  std::string program;  // name of the candidate that multiplied; "": nothing was multiplied
  std::int64_t recomputed_elements = 0;
  bool has_special_values = false;
};

// Side of a SpeedTrial that a sampled call of cuBLAS belongs to.
enum class Timed : std::uint8_t { neither, emulation, native };

// Events before and after a sampled call whose time has not been read yet.
struct PendingSample {
  void* before;
  void* after;
  Timed timed;
};

// Times of a problem's emulation and of cuBLAS, which multiply in turns under KINTSUGI_VERIFY_SPEED until
// both have enough samples.
struct SpeedTrial {
  struct Side {
    std::int64_t begun = 0, read = 0;  // calls
    double seconds = 0;                // of the quickest call but the first, which may load kernels

    void add(double sample) {
      if (read++ > 0) seconds = read == 2 || sample < seconds ? sample : seconds;
    }
  };
  enum class Choice : std::uint8_t { open, emulation, native };

  Side emulation, native;
  Choice choice = Choice::open;
  bool captures_emulation = false;  // a graph has the emulation, so that later ones have it, too

  Side* side(Timed timed) {
    return timed == Timed::emulation ? &emulation : timed == Timed::native ? &native : nullptr;
  }
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
  std::string why;                              // of the last call
  std::map<std::string, std::int64_t> reasons;  // in cuBLAS: calls by the sentence on the decision

  double native_seconds = 0;  // CallOutcome::native_seconds of the last emulated call

  CallErrors errors;  // of products under KINTSUGI_DUMP

  // Calls of cuBLAS that were measured on the device (cublas/record.cpp).
  std::int64_t sampled_calls = 0;
  double sampled_seconds = 0;
  double first_seconds = 0;  // time of the first sampled call, which may include the loading of kernels
  std::vector<PendingSample> pending;
  SpeedTrial trial;
  bool is_sampling = false;          // true: a sampled call is under way
  kintsugi_handle handle = nullptr;  // executes the sampled emulations; nullptr: no report is wanted
  bool has_execution = false;        // true: the report of the handle's last execution has not been read yet
  std::optional<SampledExecution> last_execution;
};

// Calls of one call site.
struct SiteRecord {
  ProblemRecord all;
  double multiplications = 0;  // sum of m n k over all calls
  std::map<RecordKey, ProblemRecord> problems;
  SiteInputs inputs;
  SiteOutput output;  // C of the last call; empty unless outputs are recorded
  CallErrors errors;
};

struct Record {
  std::map<RecordKey, ProblemRecord> problems;
  ProblemRecord others;  // calls of the problems that `problems` has no room for
  std::map<const Site*, SiteRecord> sites;
  Flow flow;
};

// The following functions lock record_mutex.

// Records a call. With KINTSUGI_EXPLAIN=1, writes a line to stderr for the first call of each problem.
void record_call(const char* symbol, const Call& call, const CallOutcome& outcome);

// Records the matrices of a call with a site: which sites' results the call read, and the C that it wrote.
void record_matrices(const Call& call, bool reads_c);

// Numbers of a call among those of its site and of its problem; -1: it is not to be measured there.
struct SampleNumbers {
  std::int64_t of_site = -1, of_problem = -1;

  bool is_measured() const { return of_site >= 0 || of_problem >= 0; }
};
// Counts a call. Its error is to be measured for its site if the sites file asks for errors, and for its
// problem if it is a product and KINTSUGI_DUMP is set.
SampleNumbers numbers_of_sample(const char* symbol, const Call& call);
// Records the error of that call.
void record_error(const char* symbol, const Call& call, const SampleNumbers& numbers, const CallNorms& norms);

// The caller of the following functions holds record_mutex.

// The record; nullptr: no call was recorded. Never destroyed, since the report is written after the
// destructors of static objects have run.
Record* record_if_any();
Record& the_record();
// Returns the problem's record, and adds it if there is none. Returns nullptr if there are too many records.
ProblemRecord* find_or_add(const RecordKey& key);
// Empties the record, in the child of a fork.
void forget_record();

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
