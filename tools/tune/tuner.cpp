#include "tune/tuner.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <system_error>

#include "io/interruption.hpp"
#include "io/matrix_file.hpp"
#include "report/pictures.hpp"
#include "run.hpp"

extern char** environ;

namespace kintsugi::tools {

namespace {

struct ProgramRun {
  int status = 0;      // exit status; 128 + the signal's number if a signal ended the program
  Json sites;          // sites of the report; null if there is no report
  std::string output;  // last line of the program's text output, for messages
};

struct RunOptions {
  std::string outputs;  // folder within the work folder for the sites' last outputs; "": outputs are not kept
  std::optional<std::int64_t> seed;  // value of KINTSUGI_TUNE_SEED; nullopt: unchanged
  bool measures_errors = false;      // calls of sites are compared with exact ones
};

// Runs a command and returns the exit status. stdout and stderr go to the file `log`.
int status_of(const std::vector<std::string>& command, const std::vector<std::string>& environment,
              const std::string& log) try {
  return run_command(command, pointers_to(environment).data(), log);
} catch (const std::system_error& error) {
  fail(command.front(), "cannot be run: {}", error.code().message());
}

std::string last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line))
    if (!line.empty()) last = line;
  return last;
}

Json read_json(const std::string& path) {
  std::ifstream file(path);
  return file ? parse_or_discard(file) : Json();
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

// Environment variables that the program does not inherit: the tuner sets them, or they would change the
// levels of sites.
constexpr const char* replaced[] = {
    "LD_PRELOAD",        "KINTSUGI_SITES",   "KINTSUGI_REPORT",  "KINTSUGI_POLICY", "KINTSUGI_SCHEME",
    "KINTSUGI_ACCURACY", "KINTSUGI_EXPLAIN", "KINTSUGI_VERBOSE", "KINTSUGI_DUMP",   "KINTSUGI_VERIFY_SPEED"};

bool is_replaced(const std::string& line) {
  return std::any_of(std::begin(replaced), std::end(replaced),
                     [&](const char* name) { return line.starts_with(std::string(name) + "="); });
}

class Program {
 public:
  explicit Program(const TuneRequest& request)
      : request_(request), preload_(preload_of("kintsugi_" + request.library, "PROGRAM")),
        work_(std::filesystem::absolute(request.beside(".work")).string()) {}

  // Runs the program. `rules`: member `sites` of the sites file.
  ProgramRun run(const Json& rules, const RunOptions& options) const {
    if (!options.outputs.empty()) {
      std::filesystem::remove_all(work_file(options.outputs));
      std::filesystem::create_directories(work_file(options.outputs));
    }
    write_text(work_file("sites.json"), sites_file(rules, options).dump(2) + "\n");
    std::filesystem::remove(work_file("report.json"));
    // The output of an earlier run must not be mistaken for the output of this run.
    if (!request_.output.empty()) std::filesystem::remove(request_.output);
    ProgramRun run;
    run.status = status_of(request_.program, environment(options.seed), work_file("log"));
    run.output = last_line(work_file("log"));
    const Json report = read_json(work_file("report.json"));
    if (!report.is_object()) return run;
    const bool is_of_cublas = report.value("format", "") == "kintsugi.cublas-report";
    run.sites = is_of_cublas ? sites_of_cublas(report) : report.value("sites", Json());
    return run;
  }

  // Returns the absolute path of a file in the work folder. Makes the folder if it does not exist.
  std::string work_file(const std::string& name) const {
    std::filesystem::create_directories(work_);
    return work_ + "/" + name;
  }
  void remove_work() const {
    std::error_code ignored;
    std::filesystem::remove_all(work_, ignored);
  }

 private:
  Json sites_file(const Json& rules, const RunOptions& options) const {
    Json sites = {{"format", "kintsugi.sites"}, {"format_version", 1}, {"sites", rules}};
    if (!options.outputs.empty()) sites["outputs"] = work_file(options.outputs);
    if (options.measures_errors) sites["error_samples"] = request_.error_samples;
    if (request_.frames > 1) sites["frames"] = request_.frames;
    return sites;
  }
  std::vector<std::string> environment(std::optional<std::int64_t> seed) const {
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

  const TuneRequest& request_;
  std::string preload_;
  std::string work_;
};

// Returns size and time of the program's file. They change when the program is built again, which may move
// its call sites.
std::string version_of(const std::string& program) {
  std::error_code error;
  const std::filesystem::path path = file_of_program(program);
  const auto size = std::filesystem::file_size(path, error);
  if (error) return "";
  const auto time = std::filesystem::last_write_time(path, error).time_since_epoch().count();
  return fmt::format("{} bytes, written at {}", size, time);
}

// Returns everything on which a run's results depend.
Json key_of(const TuneRequest& request) {
  const char* seed = std::getenv("KINTSUGI_TUNE_SEED");
  return {{"program", request.program},
          {"program_file", version_of(request.program.front())},
          {"folder", std::filesystem::current_path().string()},
          {"seed", seed != nullptr ? Json(seed) : Json()},
          {"drop_in", request.library},
          {"metric", request.metric},
          {"command", request.command},
          {"reference", request.reference},
          {"output", request.output},
          {"repeat", request.repeat},
          {"frames", request.frames},
          {"error_samples", request.error_samples},
          {"library", kintsugi_version()},
          {"commit", commit()}};
}

class State {
 public:
  // Reads the file. Ignores its content if it belongs to another program or to other options.
  explicit State(const TuneRequest& request) : path_(request.beside(".state.json")) {
    document_ = {{"format", "kintsugi.tune-state"},
                 {"format_version", 1},
                 {"key", key_of(request)},
                 {"profile", nullptr},
                 {"runs", Json::object()}};
    std::ifstream file(path_);
    if (!file) return;
    const Json found = parse_or_discard(file);
    const bool fits = found.is_object() && found.value("format", "") == "kintsugi.tune-state" &&
                      found.value("format_version", 0) == 1 &&
                      found.value("key", Json()) == document_.at("key") && found.contains("profile") &&
                      found.value("runs", Json()).is_object();
    if (fits) document_ = found;
  }

  const Json& profile() const { return document_.at("profile"); }  // null: the program was not profiled yet
  void keep_profile(const Json& sites) {
    document_["profile"] = sites;
    write();
  }

  // Returns the run with these levels, given as "native,fp16"; nullptr if there was no such run.
  const Json* find(const std::string& levels) const {
    const Json& runs = document_.at("runs");
    const auto found = runs.find(levels);
    return found == runs.end() ? nullptr : &*found;
  }
  void keep(const std::string& levels, const Json& run) {
    document_["runs"][levels] = run;
    write();
  }

 private:
  void write() const { write_text(path_, document_.dump(1) + "\n"); }

  std::string path_;
  Json document_;
};

// ---------------------------------------------------------------- sites

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

TunedSite site_of(const Json& json, const Json& report_sites) {
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
                 .inputs = inputs_of(json, report_sites),
                 .has_record = !json.value("may_read", Json()).is_null()};
  if (!site.problems.empty()) site.type = problem_type(site.problems.front());
  for (const Json& caller : json.at("callers")) site.callers.push_back(caller.at("function"));
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

std::vector<TunedSite> sites_of(const Json& report_sites) {
  std::vector<TunedSite> sites;
  for (const Json& json : report_sites) sites.push_back(site_of(json, report_sites));
  return sites;
}

// Returns the rule for a level, as a sites file has it.
Json rule_of(const Level& level) {
  if (level.name == "native") return {{"policy", "native"}};
  if (level.name == "exact") return {{"accuracy", "exact"}, {"policy", "emulate"}};
  return {{"scheme", level.name}};
}

// Returns the levels that a site can run: the levels of the request, or the default levels of the site's
// type. Levels that the library has no plan for are left out.
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

constexpr double infinite = std::numeric_limits<double>::infinity();

// The Frobenius norm, or the largest magnitude if `is_largest`. Squares are relative to the largest magnitude
// so far, so that they neither overflow nor underflow.
class Norm {
 public:
  explicit Norm(bool is_largest) : is_largest_(is_largest) {}
  void add(double value) {
    const double magnitude = std::fabs(value);
    if (magnitude == 0) return;
    if (is_largest_) {
      scale_ = std::max(scale_, magnitude);
      return;
    }
    if (magnitude > scale_) {
      sum_ = 1 + sum_ * (scale_ / magnitude) * (scale_ / magnitude);
      scale_ = magnitude;
    } else {
      sum_ += (magnitude / scale_) * (magnitude / scale_);
    }
  }
  double value() const { return is_largest_ ? scale_ : scale_ * std::sqrt(sum_); }

 private:
  bool is_largest_;
  double scale_ = 0, sum_ = 0;
};

bool is_same_special(double value, double reference) {
  return (std::isnan(value) && std::isnan(reference)) || (std::isinf(reference) && value == reference);
}

template <class T>
double error_of(bool is_largest, const std::vector<T>& values, const std::vector<T>& references) {
  Norm difference(is_largest), norm(is_largest);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]), reference = static_cast<double>(references[i]);
    if (is_same_special(value, reference)) continue;
    if (!std::isfinite(value) || !std::isfinite(reference)) return infinite;
    difference.add(value - reference);
    norm.add(reference);
  }
  if (difference.value() == 0) return 0;
  return norm.value() == 0 ? infinite : difference.value() / norm.value();
}

double matrix_error(bool is_largest, const Matrix& written, const Matrix& reference) {
  if (written.rows != reference.rows || written.columns != reference.columns ||
      written.type() != reference.type() || written.complex != reference.complex)
    return infinite;
  const Matrix same_order = reordered(written, reference.order);
  if (reference.type() == Type::float32)
    return error_of(is_largest, std::get<std::vector<float>>(same_order.values),
                    std::get<std::vector<float>>(reference.values));
  return error_of(is_largest, std::get<std::vector<double>>(same_order.values),
                  std::get<std::vector<double>>(reference.values));
}

std::string output_of(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) fail("--command", "\"{}\" cannot be run", command);
  std::string text;
  char part[256];
  while (const std::size_t count = std::fread(part, 1, sizeof(part), pipe)) text.append(part, count);
  const int status = ::pclose(pipe);
  if (status != 0) fail("--command", "\"{}\" failed with status {}", command, status);
  return text;
}

// Returns the error of the .npy file C relative to the file R: |C - R|_F / |R|_F for the metric "frobenius",
// max |C - R| / max |R| for "max". If C = R, the error is 0. The error is infinite if C cannot be read or has
// another shape or type, and if C and R differ in a NaN or an infinity.
double file_error(const std::string& metric, const std::string& file, const std::string& reference) {
  const Matrix expected = read_npy(reference);
  Matrix written;
  try {
    written = read_npy(file);
  } catch (const InputError&) {
    return infinite;
  }
  return matrix_error(metric == "max", written, expected);
}

// Returns the magnitude of the number that a shell command prints; infinity if it prints NaN. Throws an error
// with the command's name if the command fails or prints anything else.
double command_error(const std::string& command,
                     const std::vector<std::pair<std::string, std::string>>& variables) {
  std::string line;
  for (const auto& [name, value] : variables) line += fmt::format("export {}={}; ", name, quoted(value));
  std::string text = output_of(line + command);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  char* end = nullptr;
  const double error = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0')
    fail("--command", "\"{}\" printed \"{}\" in place of one number", command, text.substr(0, 80));
  return std::isnan(error) ? infinite : std::fabs(error);
}

class Tuner {
 public:
  explicit Tuner(const TuneRequest& request)
      : request_(request), program_(request), state_(request), progress_("runs of the program") {}

  Tuning run() {
    profile();
    prepare();
    const Evaluate evaluate = [this](const Levels& levels) { return outcome_of(levels); };
    std::vector<std::string> names;
    for (const TunedSite& site : tuning_.sites) names.push_back(site_label(site));
    tuning_.result = search(names, evaluate);
    tuning_.site_errors = state_.find(key_of(tuning_.result.levels))->value("site_errors", Json::object());
    measure_call_errors();
    for (std::int64_t seed = 1; seed <= request_.validate; ++seed) validate(seed);
    program_.remove_work();
    return std::move(tuning_);
  }

 private:
  SearchResult search(const std::vector<std::string>& names, const Evaluate& evaluate) const {
    if (request_.search == "greedy" && !tuning_.problem.roles.empty())
      return search_in_groups(tuning_.problem, names, evaluate);
    if (request_.search == "greedy") return search_greedily(tuning_.problem, names, evaluate);
    if (request_.search == "estimated") return search_by_estimate(tuning_.problem, names, evaluate);
    return search_exhaustively(tuning_.problem, evaluate);
  }

  // ---------------------------------------------------------------- runs

  ProgramRun run_program(const Json& rules, RunOptions options) {
    if (!has_reference() || !request_.has_site_outputs()) options.outputs.clear();
    ProgramRun run = program_.run(rules, options);
    progress_.show(++tuning_.runs_made, expected_runs());
    // The same ^C has ended the program, so the run's result is not kept.
    if (watch_.signal() != 0)
      throw Interrupted(
          fmt::format("interrupted; the same command goes on from {}", request_.beside(".state.json")),
          watch_.signal());
    return run;
  }

  std::int64_t expected_runs() const {
    double count = 2;  // the profiling run and the reference run
    if (request_.search == "exhaustive")
      count += combinations(tuning_.problem);
    else
      for (const std::size_t levels : tuning_.problem.level_counts) count += static_cast<double>(levels);
    return std::max(static_cast<std::int64_t>(count) + 2 * request_.validate, tuning_.runs_made);
  }

  bool has_reference() const { return request_.metric != "command"; }

  // Runs the program. Fails if the run ends with an error, or makes no call that the drop-in answers.
  ProgramRun required_run(const Json& rules, const RunOptions& options, const char* what) {
    ProgramRun run = run_program(rules, options);
    if (run.status != 0)
      fail(request_.program.front(), "the {} ended with status {}: {}", what, run.status, run.output);
    if (run.sites.is_null() || run.sites.empty())
      fail(
          request_.program.front(),
          "the {} made no call of {} that the drop-in answers; levels that are compiled into a program are not tuned",
          what, request_.library == "blas" ? "BLAS" : "cuBLAS");
    return run;
  }

  void profile() {
    const RunOptions options{"outputs", std::nullopt, request_.error_samples > 0};
    if (state_.profile().is_null())
      state_.keep_profile(required_run(Json::object(), options, "profiling run").sites);
    tuning_.sites = sites_of(state_.profile());
  }

  // Runs the program with the final levels once more, and compares calls of sites with exact ones. Runs of
  // the search do not compare, since they are timed.
  void measure_call_errors() {
    tuning_.call_errors = Json::object();
    if (request_.error_samples == 0) return;
    const std::string key = key_of(tuning_.result.levels);
    Json run = *state_.find(key);
    if (!run.contains("call_errors")) {
      const ProgramRun measured =
          run_program(rules_of(tuning_.result.levels), {"outputs", std::nullopt, true});
      run["call_errors"] = Json::object();
      if (!measured.sites.is_null())
        for (const Json& site : measured.sites) run["call_errors"][site.at("site")] = site.at("error");
      state_.keep(key, run);
    }
    tuning_.call_errors = run.at("call_errors");
  }

  Json reference_rules() const {
    Json rules = Json::object();
    for (const TunedSite& site : tuning_.sites) rules[site.name] = rule_of({request_.reference, 1});
    return rules;
  }

  // Runs the program with the reference levels and keeps its outputs in the work folder.
  void make_reference(std::optional<std::int64_t> seed) {
    const std::string finished = reference_folder(seed);
    if (!has_reference() || std::filesystem::exists(finished)) return;
    const ProgramRun run = required_run(reference_rules(), {"making", seed, false}, "reference run");
    const std::string made = program_.work_file("making");
    std::filesystem::create_directories(made);
    if (!request_.output.empty()) {
      if (!std::filesystem::exists(request_.output))
        fail("--output", "the program wrote no {}", request_.output);
      std::filesystem::copy_file(request_.output, made + "/output.npy",
                                 std::filesystem::copy_options::overwrite_existing);
    }
    name_by_site(run.sites, made);
    std::filesystem::rename(made, finished);  // An interrupted run leaves no folder of this name.
  }

  // Renames the outputs after their sites. Their ordinal numbers may be different in the next run.
  static void name_by_site(const Json& sites, const std::string& folder) {
    for (const Json& site : sites)
      if (site.at("output").is_string())
        std::filesystem::rename(folder + "/" + site.at("output").get<std::string>(),
                                folder + "/" + file_name(site.at("site")));
  }
  static std::string file_name(std::string site) {
    std::replace(site.begin(), site.end(), '/', '_');
    constexpr std::size_t longest = 200;
    if (site.size() <= longest) return site + ".npy";
    // The hash tells sites apart whose names begin with the same innermost frames.
    return fmt::format("{}-{:016x}.npy", site.substr(0, longest), std::hash<std::string>()(site));
  }

  // ---------------------------------------------------------------- errors and costs

  std::string reference_folder(std::optional<std::int64_t> seed) const {
    return program_.work_file(seed ? fmt::format("reference-{}", *seed) : "reference");
  }

  // Returns the errors of the sites' last outputs, except of sites that the reference run did not reach.
  Json site_errors(const ProgramRun& run, std::optional<std::int64_t> seed) const {
    Json errors = Json::object();
    if (!has_reference() || run.status != 0) return errors;
    for (const TunedSite& site : tuning_.sites) {
      const std::string expected = reference_folder(seed) + "/" + file_name(site.name);
      if (std::filesystem::exists(expected))
        errors[site.name] = number(file_error(request_.metric, output_in(run, site), expected));
    }
    return errors;
  }

  double error_of(const ProgramRun& run, const Json& site_errors, std::optional<std::int64_t> seed) const {
    if (run.status != 0) return infinite;
    if (!has_reference()) {
      std::vector<std::pair<std::string, std::string>> variables;
      if (seed) variables.emplace_back("KINTSUGI_TUNE_SEED", std::to_string(*seed));
      return command_error(request_.command, variables);
    }
    if (!request_.output.empty())
      return file_error(request_.metric, request_.output, reference_folder(seed) + "/output.npy");
    double worst = 0;
    for (const Json& error : site_errors) worst = std::max(worst, read_number(error));
    return worst;
  }

  // Returns the file with the site's last output; "" if the run did not reach the site.
  std::string output_in(const ProgramRun& run, const TunedSite& site) const {
    for (const Json& json : run.sites)
      if (json.at("site") == site.name && json.at("output").is_string())
        return program_.work_file("outputs/" + json.at("output").get<std::string>());
    return "";
  }

  Json rules_of(const Levels& levels) const {
    Json rules = Json::object();
    for (std::size_t site = 0; site < levels.size(); ++site)
      rules[tuning_.sites[site].name] = rule_of(tuning_.levels[site][levels[site]]);
    return rules;
  }

  std::string key_of(const Levels& levels) const {
    std::string key;
    for (std::size_t site = 0; site < levels.size(); ++site)
      key += (site == 0 ? "" : ",") + tuning_.levels[site][levels[site]].name;
    return key;
  }

  // Runs the program --repeat times. Returns the shortest time of every site, the largest error, and the
  // errors of the sites in the run that has the largest error.
  Json measure(const Levels& levels) {
    constexpr auto no_seed = std::nullopt;
    make_reference(no_seed);
    Json seconds = Json::object(), errors;
    double error = 0;
    for (std::int64_t repeat = 0; repeat < request_.repeat; ++repeat) {
      const ProgramRun run = run_program(rules_of(levels), {"outputs", no_seed, false});
      const Json found_errors = site_errors(run, no_seed);
      const double found_error = error_of(run, found_errors, no_seed);
      if (repeat == 0 || found_error > error) {
        errors = found_errors;
        error = found_error;
      }
      if (run.sites.is_null()) continue;
      for (const Json& site : run.sites) {
        const std::string name = site.at("site");
        const double found = site.at("seconds");
        seconds[name] = seconds.contains(name) ? std::min(seconds.at(name).get<double>(), found) : found;
      }
    }
    return {{"error", number(error)}, {"seconds", seconds}, {"site_errors", errors}};
  }

  Outcome outcome_of(const Levels& levels) {
    const std::string key = key_of(levels);
    const Json* known = state_.find(key);
    if (known == nullptr) state_.keep(key, measure(levels));
    const Json& run = *state_.find(key);
    Outcome outcome{read_number(run.at("error")), {}};
    for (std::size_t site = 0; site < levels.size(); ++site) {
      const TunedSite& tuned = tuning_.sites[site];
      const double seconds = run.at("seconds").value(tuned.name, 0.0);
      outcome.site_cost.push_back(request_.cost == "time"
                                      ? seconds
                                      : tuned.multiplications * tuning_.levels[site][levels[site]].weight);
    }
    return outcome;
  }

  // ---------------------------------------------------------------- search and validation

  void prepare() {
    for (const TunedSite& site : tuning_.sites) tuning_.levels.push_back(levels_for(request_, site));
    // Shares are shares of multiplications, not of time: the first calls' time contains the start of the
    // BLAS.
    double all = 0;
    for (const TunedSite& site : tuning_.sites) all += site.multiplications;
    SearchProblem& problem = tuning_.problem;
    problem.limit = request_.limit;
    for (std::size_t i = 0; i < tuning_.sites.size(); ++i) {
      tuning_.is_searched.push_back(tuning_.sites[i].multiplications >= request_.min_share * all);
      problem.level_counts.push_back(tuning_.is_searched[i] ? tuning_.levels[i].size() : 1);
      problem.predecessors.push_back(predecessors_of(tuning_.sites[i]));
    }
    problem.roles = roles_of(tuning_.sites);
    check_combinations();
  }

  void check_combinations() const {
    constexpr double most_runs = 4096, most_estimates = 1 << 22;
    const double count = combinations(tuning_.problem);
    if (request_.search == "exhaustive" && count > most_runs)
      fail("--search", "exhaustive would run the program {:.0f} times, more than {:.0f}", count, most_runs);
    if (request_.search == "estimated" && count > most_estimates)
      fail("--search",
           "estimated would estimate {:.3g} combinations, more than {:.0f}: a larger --min-share leaves "
           "fewer sites",
           count, most_estimates);
  }

  std::vector<std::size_t> predecessors_of(const TunedSite& site) const {
    std::vector<std::size_t> found;
    for (const FlowInput& input : site.inputs)
      for (std::size_t other = 0; other < tuning_.sites.size(); ++other)
        if (tuning_.sites[other].name == input.site) found.push_back(other);
    return found;
  }

  void validate(std::int64_t seed) {
    make_reference(seed);
    const ProgramRun run = run_program(rules_of(tuning_.result.levels), {"outputs", seed, false});
    const double error = error_of(run, site_errors(run, seed), seed);
    tuning_.validations.push_back({seed, error, error <= request_.limit});
    std::filesystem::remove_all(reference_folder(seed));
  }

  const TuneRequest& request_;
  InterruptionWatch watch_;
  Program program_;
  State state_;
  Progress progress_;
  Tuning tuning_;
};

}  // namespace

std::string site_label(const TunedSite& site) {
  if (site.function.empty()) return site.name;
  std::string label = site.function;
  // A function may have several sites with records, "file:function:callee#ordinal".
  if (site.has_record) label = site.name.substr(0, site.name.find(" < ")).substr(site.name.find(':') + 1);
  for (const std::string& caller : site.callers) label += " < " + (caller.empty() ? "?" : caller);
  return label;
}

Tuning tune(const TuneRequest& request) { return Tuner(request).run(); }

Json configuration(const TuneRequest& request, const Tuning& tuning) {
  Json rules = Json::object();
  for (std::size_t site = 0; site < tuning.sites.size(); ++site)
    rules[tuning.sites[site].name] = rule_of(tuning.level(site));
  Json sites = {{"format", "kintsugi.sites"}, {"format_version", 1}, {"sites", rules}};
  if (request.frames > 1) sites["frames"] = request.frames;
  sites["tuned"] = {{"limit", request.limit},     {"error", number(tuning.result.outcome.error)},
                    {"metric", request.metric},   {"reference", request.reference},
                    {"program", request.program}, {"held", tuning.held()}};
  return sites;
}

}  // namespace kintsugi::tools
