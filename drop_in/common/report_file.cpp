#include "report_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lock.hpp"

namespace kintsugi::drop_in {

namespace {

std::string with_process_number(std::string path) {
  const auto position = path.find("%p");
  return position == std::string::npos ? path : path.replace(position, 2, std::to_string(::getpid()));
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

std::string text_of(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void write_report_file(const std::string& name, const std::string& contents) {
  const std::string path = with_process_number(name);
  if (!write_file(path, contents))
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

void print_no_product(const char* library, const std::string& why) {
  std::fprintf(stderr, "kintsugi: no product of %s reached Kintsugi from %s (process %lld): %s\n", library,
               program_invocation_short_name, static_cast<long long>(::getpid()), why.c_str());
}

bool report_exists(const std::string& name) { return ::access(with_process_number(name).c_str(), F_OK) == 0; }

bool has_own_report_file(const std::string& name) {
  return !is_forked_child() || name.find("%p") != std::string::npos;
}

}  // namespace kintsugi::drop_in
