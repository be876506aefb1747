#include "tune/tuner.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "io/interruption.hpp"
#include "tune/errors.hpp"
#include "tune/state.hpp"

namespace kintsugi::tools {

namespace {

constexpr double error_of_failure = std::numeric_limits<double>::infinity();

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
      fail(request_.program.front(), "the {} made no call of {} that the drop-in answers", what,
           request_.library == "blas" ? "BLAS" : "cuBLAS");
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
    if (run.status != 0) return error_of_failure;
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
    for (const auto& [name, calls] : site.inputs)
      for (std::size_t other = 0; other < tuning_.sites.size(); ++other)
        if (tuning_.sites[other].name == name) found.push_back(other);
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

bool Tuning::held() const {
  return std::all_of(validations.begin(), validations.end(), [](const Validation& one) { return one.held; });
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
