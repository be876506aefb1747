#include "record.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <tuple>

#include "lock.hpp"
#include "page.hpp"
#include "settings.hpp"
#include "symbol.hpp"

namespace kintsugi::drop_in {

namespace {

// Largest numbers of problems that are recorded one by one. They bound the memory in programs that always
// multiply new shapes.
constexpr std::size_t most_problems = 10000, most_problems_of_site = 1000;

Record* all_records = nullptr;

std::string_view type_name(const Call& call) {
  constexpr std::string_view names[] = {"fp32", "fp64", "c32", "c64"};
  return call.is_supported ? names[call.type] : std::string_view();
}

void add(ProblemRecord& problem, const CallOutcome& outcome) {
  problem.calls += outcome.calls;
  problem.seconds += outcome.seconds;
  problem.recomputed_elements += outcome.recomputed_elements;
  problem.calls_with_special_values += outcome.has_special_values ? outcome.calls : 0;
  problem.offloaded_calls += outcome.is_offloaded ? outcome.calls : 0;
  problem.failed_offloads += outcome.offload_failed ? outcome.calls : 0;
  problem.failed_calls += outcome.failed ? outcome.calls : 0;
  problem.why = outcome.why;
  if (outcome.native_seconds > 0) problem.native_seconds = outcome.native_seconds;
  if (this_drop_in.is_cublas) problem.reasons[outcome.why] += outcome.calls;
  if (outcome.only_scaled) {
    problem.scaled_calls += outcome.calls;
  } else if (outcome.is_native()) {
    problem.native_calls += outcome.calls;
  } else {
    problem.calls_of_program[outcome.program] += outcome.calls;
  }
}

// Writes the line of KINTSUGI_VERBOSE. The seconds of a call of cuBLAS are not known when it returns.
void print_call(const RecordKey& key, const CallOutcome& outcome) {
  ProblemRecord call;
  add(call, outcome);
  char seconds[32] = "";
  if (!this_drop_in.is_cublas) std::snprintf(seconds, sizeof seconds, "%.3g s; ", outcome.seconds);
  print_line({key.symbol, " ", shape_of(key), ": ", programs_of(call), "; ", seconds, outcome.why});
}

void add_to_site(SiteRecord& site, const RecordKey& key, const CallOutcome& outcome) {
  add(site.all, outcome);
  site.multiplications += static_cast<double>(outcome.calls) * static_cast<double>(key.m) *
                          static_cast<double>(key.n) * static_cast<double>(key.k);
  if (!site.problems.contains(key) && site.problems.size() >= most_problems_of_site) return;
  add(site.problems[key], outcome);
}

}  // namespace

RecordKey record_key(const char* symbol, const Call& call) {
  const bool has_site = this_drop_in.is_cublas && call.site != nullptr;
  return {.symbol = symbol,
          .routine = call.routine,
          .layout = call.layout,
          .side = call.side,
          .uplo = call.uplo,
          .op_a = call.op_a,
          .op_b = call.op_b,
          .diag = call.diag,
          .m = call.m,
          .n = call.n,
          .k = call.k,
          .count = call.count,
          .site = has_site ? std::string_view(call.site->name) : std::string_view(),
          .type = type_name(call)};
}

void record_call(const char* symbol, const Call& call, const CallOutcome& outcome) {
  const RecordKey key = record_key(symbol, call);
  const std::lock_guard lock(record_mutex);
  if (settings().verbose) print_call(key, outcome);
  if (call.site != nullptr) add_to_site(the_record().sites[call.site], key, outcome);
  ProblemRecord* const problem = find_or_add(key);
  if (problem == nullptr) return add(the_record().others, outcome);
  const bool is_first = problem->calls == 0;
  add(*problem, outcome);
  if (is_first && settings().explain && !settings().verbose) print_explanation(key, *problem);
}

void record_matrices(const Call& call, bool reads_c) {
  const std::lock_guard lock(record_mutex);
  SiteRecord& site = the_record().sites[call.site];
  the_record().flow.add(*call.site, inputs_of(call, reads_c), output_of(call), site.inputs);
  if (!settings().sites->outputs.empty()) site.output.save(call);
}

SampleNumbers numbers_of_sample(const char* symbol, const Call& call) {
  const bool is_of_site = call.site != nullptr && settings().sites->error_samples > 0;
  const bool is_of_problem = settings().dump && call.routine == Routine::gemm;
  SampleNumbers numbers;
  if (!is_of_site && !is_of_problem) return numbers;
  const std::lock_guard lock(record_mutex);
  if (is_of_site) numbers.of_site = the_record().sites[call.site].errors.number_of_sample();
  ProblemRecord* const problem = is_of_problem ? find_or_add(record_key(symbol, call)) : nullptr;
  if (problem != nullptr) numbers.of_problem = problem->errors.number_of_sample();
  return numbers;
}

void record_error(const char* symbol, const Call& call, const SampleNumbers& numbers,
                  const CallNorms& norms) {
  constexpr std::int64_t samples_of_problem = 4;
  const std::lock_guard lock(record_mutex);
  if (numbers.of_site >= 0)
    the_record().sites[call.site].errors.add(numbers.of_site, norms, settings().sites->error_samples);
  ProblemRecord* const problem = numbers.of_problem >= 0 ? find_or_add(record_key(symbol, call)) : nullptr;
  if (problem != nullptr) problem->errors.add(numbers.of_problem, norms, samples_of_problem);
}

Record* record_if_any() { return all_records; }

Record& the_record() {
  if (all_records == nullptr) all_records = new Record;
  return *all_records;
}

ProblemRecord* find_or_add(const RecordKey& key) {
  Record& all = the_record();
  const auto found = all.problems.find(key);
  if (found != all.problems.end()) return &found->second;
  return all.problems.size() < most_problems ? &all.problems[key] : nullptr;
}

void forget_record() {
  all_records = nullptr;
  forget_own_record();
}

// ------------------------------------------------------------------ report

namespace {

std::string with_process_number(std::string path) {
  const auto position = path.find("%p");
  return position == std::string::npos ? path : path.replace(position, 2, std::to_string(::getpid()));
}

Json sites_json(const Record& record) {
  Json json = Json::array();
  for (const Site* site : sites_in_order(record)) {
    Json members = {{"site", site->name},
                    {"ordinal", json.size() + 1},
                    {"module", site->module},
                    {"function", site->function},
                    {"offset", site->offset}};
    complete(members, *site, record.sites.at(site));
    json.push_back(std::move(members));
  }
  return json;
}

}  // namespace

bool write_file(const std::string& path, const std::string& contents) {
  const std::string temporary = path + "." + std::to_string(::getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  const bool closed = std::fclose(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  std::remove(temporary.c_str());
  errno = error;
  return false;
}

std::vector<const Site*> sites_in_order(const Record& record) {
  std::vector<const Site*> sites;
  for (const auto& [site, calls] : record.sites) sites.push_back(site);
  std::sort(sites.begin(), sites.end(), [](const Site* one, const Site* other) {
    return std::tie(one->module, one->offset, one->name) <
           std::tie(other->module, other->offset, other->name);
  });
  return sites;
}

void print_explanation(const RecordKey& key, const ProblemRecord& problem) {
  print_line({key.symbol, " ", shape_of(key), ": ", programs_of(problem), "; ", problem.why});
}

// Bytes of an environment variable or a path that are no UTF-8 are replaced.
std::string report_document(const Record& record) {
  Json json = {{"format", this_drop_in.report_format},
               {"format_version", 1},
               {"version", kintsugi_version()},
               {"process", static_cast<std::int64_t>(::getpid())},
               {"policy", policy_name(settings().policy)},
               {"accuracy", settings().accuracy},
               {this_drop_in.member, file_of(find_next(this_drop_in.known_function))}};
  json["problems"] = Json::array();
  for (const auto& [key, problem] : record.problems) {
    json["problems"].push_back(problem_json(key, problem));
    if (settings().dump) json["problems"].back()["error"] = problem.errors.json();
  }
  json["other_problems"] = counts_json(record.others);
  json.update(further_members());
  if (settings().sites) json["sites"] = sites_json(record);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_report(const Record& record) {
  if (settings().report == "-") return print_table(record);
  const std::string path = with_process_number(settings().report);
  const std::string document = report_document(record);
  if (!write_file(path, path.ends_with(".html") ? report_page(document) : document))
    std::fprintf(stderr, "kintsugi: KINTSUGI_REPORT = \"%s\" cannot be written: %s\n", path.c_str(),
                 std::strerror(errno));
}

void print_rows(std::vector<TableRow> rows, const char* things) {
  constexpr std::size_t most_rows = 20;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const TableRow& one, const TableRow& other) { return one.seconds > other.seconds; });
  for (std::size_t i = 0; i < std::min(rows.size(), most_rows); ++i)
    std::fprintf(stderr, "%s\n", rows[i].text.c_str());
  if (rows.size() > most_rows)
    std::fprintf(stderr, "kintsugi: %zu more %s; KINTSUGI_REPORT=FILE.json lists all\n",
                 rows.size() - most_rows, things);
}

void print_no_product(const std::string& why) {
  std::fprintf(stderr, "kintsugi: no product of %s reached Kintsugi from %s (process %lld): %s\n",
               this_drop_in.library, program_invocation_short_name, static_cast<long long>(::getpid()),
               why.c_str());
}

bool report_exists(const std::string& name) { return ::access(with_process_number(name).c_str(), F_OK) == 0; }

bool has_own_report_file(const std::string& name) {
  return !is_forked_child() || name.find("%p") != std::string::npos;
}

}  // namespace kintsugi::drop_in
