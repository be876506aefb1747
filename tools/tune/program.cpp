#include "tune/program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "report/pictures.hpp"
#include "run/preload.hpp"

extern char** environ;

namespace kintsugi::tools {

namespace {

// Environment variables that the program does not inherit: the tuner sets them, or they would change the
// levels of sites.
constexpr const char* replaced[] = {"LD_PRELOAD",      "KINTSUGI_SITES",  "KINTSUGI_REPORT",
                                    "KINTSUGI_POLICY", "KINTSUGI_SCHEME", "KINTSUGI_ACCURACY",
                                    "KINTSUGI_EXPLAIN"};

bool is_replaced(const std::string& line) {
  return std::any_of(std::begin(replaced), std::end(replaced),
                     [&](const char* name) { return line.starts_with(std::string(name) + "="); });
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

// Runs a command and returns the exit status. stdout and stderr go to the file `log`.
int spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
          const std::string& log) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, command.front().c_str(), &actions, nullptr,
                                   pointers(command).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(command.front(), "cannot be run: {}", std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail(command.front(), "is lost: {}", std::strerror(errno));
  constexpr int signal_base = 128;  // added to the number of a signal, as shells do
  return WIFEXITED(status) ? WEXITSTATUS(status) : signal_base + WTERMSIG(status);
}

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  return last;
}

// Returns the sites of a report of the cuBLAS drop-in in the format of the BLAS drop-in. The report of the
// cuBLAS drop-in counts calls by problem, not by site. It has no outputs of sites.
Json sites_of_cublas(const Json& report) {
  std::map<std::string, Json> sites;
  for (Json site : report.value("sites", Json::array())) {
    site.update({{"calls", 0},
                 {"multiplications", 0.0},
                 {"seconds", 0.0},
                 {"output", nullptr},
                 {"problems", Json::array()}});
    sites[site.at("site")] = site;
  }
  for (const Json& problem : report.at("problems")) {
    if (!problem.contains("site")) continue;
    Json& site = sites.at(problem.at("site"));
    double multiplications = problem.at("calls");
    for (const char* const size : {"m", "n", "k", "batch_count"})
      multiplications *= problem.at(size).get<double>();
    site["calls"] = site.at("calls").get<std::int64_t>() + problem.at("calls").get<std::int64_t>();
    site["multiplications"] = site.at("multiplications").get<double>() + multiplications;
    if (problem.at("device_seconds").is_number())
      site["seconds"] = site.at("seconds").get<double>() + problem.at("device_seconds").get<double>();
    site["problems"].push_back(problem);
  }
  Json all = Json::array();
  for (auto& [name, site] : sites)
    if (!site.at("problems").empty()) all.push_back(std::move(site));
  return all;
}

Json read_json(const std::string& path) {
  std::ifstream file(path);
  return file ? parse_or_discard(file) : Json();
}

}  // namespace

Program::Program(const TuneRequest& request)
    : request_(request), preload_(preload_of("kintsugi_" + request.library, "PROGRAM")),
      work_(std::filesystem::absolute(request.beside(".work")).string()) {}

std::string Program::work_file(const std::string& name) const {
  std::filesystem::create_directories(work_);
  return work_ + "/" + name;
}

void Program::remove_work() const {
  std::error_code ignored;
  std::filesystem::remove_all(work_, ignored);
}

std::vector<std::string> Program::environment(std::optional<std::int64_t> seed) const {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line)
    if (!is_replaced(*line) && !(seed && std::strncmp(*line, "KINTSUGI_TUNE_SEED=", 19) == 0))
      lines.emplace_back(*line);
  lines.push_back("LD_PRELOAD=" + preload_);
  lines.push_back("KINTSUGI_SITES=" + work_file("sites.json"));
  lines.push_back("KINTSUGI_REPORT=" + work_file("report.json"));
  if (seed) lines.push_back(fmt::format("KINTSUGI_TUNE_SEED={}", *seed));
  return lines;
}

Json Program::sites_file(const Json& rules, const RunOptions& options) const {
  Json sites = {{"format", "kintsugi.sites"}, {"format_version", 1}, {"sites", rules}};
  if (!options.outputs.empty()) sites["outputs"] = work_file(options.outputs);
  if (options.measures_errors) sites["error_samples"] = request_.error_samples;
  if (request_.frames > 1) sites["frames"] = request_.frames;
  return sites;
}

ProgramRun Program::run(const Json& rules, const RunOptions& options) const {
  if (!options.outputs.empty()) {
    std::filesystem::remove_all(work_file(options.outputs));
    std::filesystem::create_directories(work_file(options.outputs));
  }
  write_text(work_file("sites.json"), sites_file(rules, options).dump(2) + "\n");
  std::filesystem::remove(work_file("report.json"));
  // The output of an earlier run must not be mistaken for the output of this run.
  if (!request_.output.empty()) std::filesystem::remove(request_.output);
  ProgramRun run;
  run.status = spawn(request_.program, environment(options.seed), work_file("log"));
  run.output = last_line(work_file("log"));
  const Json report = read_json(work_file("report.json"));
  if (!report.is_object()) return run;
  const bool is_of_cublas = report.value("format", "") == "kintsugi.cublas-report";
  run.sites = is_of_cublas ? sites_of_cublas(report) : report.value("sites", Json());
  return run;
}

// ---------------------------------------------------------------- sites

namespace {

// Returns BLAS's letter for the type of a problem in a report. Reports of the cuBLAS drop-in name the type.
// In reports of the BLAS drop-in the letter begins the routine's name: "s" of sgemm_, cblas_sgemm and
// scipy_cblas_sgemm.
std::string problem_type(const Json& problem) {
  static const std::map<std::string, std::string> letters{
      {"fp32", "s"}, {"fp64", "d"}, {"c32", "c"}, {"c64", "z"}};
  if (problem.contains("type")) return letters.at(problem.at("type"));
  std::string symbol = problem.at("symbol");
  for (const std::string prefix : {"scipy_", "cblas_"})
    if (symbol.starts_with(prefix)) symbol.erase(0, prefix.size());
  return symbol.substr(0, 1);
}

TunedSite site_of(const Json& json) {
  TunedSite site{.name = json.at("site"),
                 .module = json.at("module"),
                 .function = json.at("function"),
                 .type = "d",
                 .calls = json.at("calls"),
                 .multiplications = json.at("multiplications"),
                 .seconds = json.at("seconds"),
                 .callers = {},
                 .call_error = json.at("error"),
                 .problems = json.at("problems"),
                 .inputs = {}};
  if (!site.problems.empty()) site.type = problem_type(site.problems.front());
  for (const Json& caller : json.at("callers")) site.callers.push_back(caller.at("function"));
  for (const Json& input : json.at("inputs")) site.inputs.emplace_back(input.at("site"), input.at("calls"));
  std::stable_sort(site.inputs.begin(), site.inputs.end(),
                   [](const auto& one, const auto& other) { return one.second > other.second; });
  return site;
}

// True if the library has a plan for products of the type by the scheme.
bool has_plan(const std::string& type, const std::string& scheme) {
  kintsugi_problem problem = KINTSUGI_PROBLEM_INIT;
  problem.m = problem.n = problem.k = problem.lda = problem.ldb = problem.ldc = 64;
  problem.type_a = problem.type_b = problem.type_c = problem.type_scalar = type == "s"   ? KINTSUGI_F32
                                                                           : type == "d" ? KINTSUGI_F64
                                                                           : type == "c" ? KINTSUGI_C32
                                                                                         : KINTSUGI_C64;
  kintsugi_options options = KINTSUGI_OPTIONS_INIT;
  options.scheme = scheme.c_str();
  kintsugi_plan plan = nullptr;
  const kintsugi_status status = kintsugi_plan_create(nullptr, &problem, &options, &plan);
  kintsugi_plan_destroy(plan);
  return status == KINTSUGI_SUCCESS;
}

// Returns the default levels, the most accurate and most expensive first: for FP32 three products of slices,
// then one product; for FP64 fewer and fewer moduli.
std::vector<std::string> levels_of_type(const std::string& type) {
  if (type == "s" || type == "c") return {"native", "fp16x3", "tf32", "fp16"};
  return {"native", "ozaki2:moduli=12", "ozaki2:moduli=9", "ozaki2:moduli=6"};
}

Level level_of(const std::string& text) {
  const auto at = text.rfind('@');
  Level level{text.substr(0, at), 1};
  if (at != std::string::npos) level.weight = parse_number("--levels", text.substr(at + 1));
  if (level.name.empty() || !(level.weight >= 0))
    fail("--levels", "\"{}\" is not NAME or NAME@WEIGHT with a weight of at least 0", text);
  return level;
}

}  // namespace

std::vector<TunedSite> sites_of(const Json& report_sites) {
  std::vector<TunedSite> sites;
  for (const Json& json : report_sites) sites.push_back(site_of(json));
  return sites;
}

std::string site_label(const TunedSite& site) {
  if (site.function.empty()) return site.name;
  std::string label = site.function;
  for (const std::string& caller : site.callers) label += " < " + (caller.empty() ? "?" : caller);
  return label;
}

Json rule_of(const Level& level) {
  if (level.name == "native") return {{"policy", "native"}};
  if (level.name == "exact") return {{"accuracy", "exact"}, {"policy", "emulate"}};
  return {{"scheme", level.name}};
}

std::vector<Level> levels_for(const TuneRequest& request, const TunedSite& site) {
  const auto& texts = request.levels.empty() ? levels_of_type(site.type) : request.levels;
  std::vector<Level> levels;
  for (const std::string& text : texts) {
    const Level level = level_of(text);
    if (level.name == "native" || level.name == "exact" || has_plan(site.type, level.name))
      levels.push_back(level);
  }
  if (levels.empty()) levels.push_back({"native", 1});
  return levels;
}

}  // namespace kintsugi::tools
