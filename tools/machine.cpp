#include "machine.hpp"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace kintsugi::tools {

namespace {

// Returns the value of the first line "key : value" of a file of /proc; "" if there is none.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    if (line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1) != key) continue;
    const auto first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return "";
}

// Returns a value of /proc/meminfo, which counts in kB of 1024 bytes, in bytes.
double memory_value(const std::string& key) {
  const std::string text = proc_value("/proc/meminfo", key);
  return text.empty() ? 0 : 1024.0 * std::strtod(text.c_str(), nullptr);
}

int usable_threads() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

Machine read_machine() {
  Machine result;
  struct utsname name {};
  if (uname(&name) == 0) {
    const std::string_view release(name.release);  // version, hyphen, text of the distribution
    result.system = fmt::format("{} {} {}", name.sysname, release.substr(0, release.find('-')), name.machine);
  }
  result.processor = proc_value("/proc/cpuinfo", "model name");
  if (result.processor.empty()) result.processor = "unknown";
  std::istringstream flags(proc_value("/proc/cpuinfo", "flags"));
  for (std::string flag; flags >> flag;) result.flags.push_back(flag);
  result.threads = usable_threads();
  result.memory_bytes = memory_value("MemTotal");
  result.available_bytes = memory_value("MemAvailable");
  return result;
}

}  // namespace

bool Machine::has(const std::string& flag) const {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

const std::vector<std::string>& product_flags() {
  static const std::vector<std::string> names{"avx2",        "fma",         "avx512f",  "avx512ifma",
                                              "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8"};
  return names;
}

const Machine& machine() {
  static const Machine result = read_machine();
  return result;
}

Json machine_document() {
  Json flags = Json::array();
  for (const auto& flag : product_flags()) {
    if (machine().has(flag)) flags.push_back(flag);
  }
  return {{"system", machine().system},
          {"processor", machine().processor},
          {"processor_flags", flags},
          {"threads", machine().threads},
          {"memory_bytes", static_cast<std::int64_t>(machine().memory_bytes)}};
}

}  // namespace kintsugi::tools
