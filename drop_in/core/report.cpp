#include "report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "lock.hpp"
#include "settings.hpp"
#include "symbol.hpp"

namespace kintsugi::drop_in {

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
  std::fprintf(stderr, "kintsugi: %.*s %s: %s; %s\n", static_cast<int>(key.symbol.size()), key.symbol.data(),
               shape_of(key).c_str(), programs_of(problem).c_str(), problem.why.c_str());
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
  for (const auto& [key, problem] : record.problems) json["problems"].push_back(problem_json(key, problem));
  json["other_problems"] = counts_json(record.others);
  json.update(further_members());
  if (settings().sites) json["sites"] = sites_json(record);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_report(const Record& record) {
  if (settings().report == "-") return print_table(record);
  const std::string path = with_process_number(settings().report);
  if (!write_file(path, report_document(record)))
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
