// Tunes a program: profiling run, reference run, search, validation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "tune/flow.hpp"
#include "tune/search.hpp"

namespace kintsugi::tools {

// A precision at which a call site may run.
struct Level {
  std::string name;   // native, exact or a scheme
  double weight = 1;  // cost of a multiplication, for --cost weights
};

struct TuneRequest {
  double limit = 0;
  std::string library = "blas";      // library whose calls are tuned: blas or cublas
  std::string metric = "frobenius";  // or max, command
  std::string command;               // shell command that prints the error, if the metric is "command"
  std::string reference = "native";  // or exact
  std::string output;                // file that the program writes; "": the sites' last outputs are compared
  std::string search = "greedy";     // or estimated, exhaustive
  std::string cost = "time";         // or weights
  std::vector<std::string> levels;   // NAME or NAME@WEIGHT, the most accurate first; empty: by type
  double min_share = 0.01;           // sites with a smaller share of the multiplications keep the first level
  std::int64_t repeat = 1;
  std::int64_t validate = 0;
  std::int64_t frames = 1;         // frames of the call stack that tell sites apart
  std::int64_t error_samples = 4;  // calls of each site that are compared with exact ones; 0: none
  std::string sites_file = "sites.json";
  bool json = false;
  std::vector<std::string> program;

  // The cuBLAS drop-in does not keep outputs of sites, since these are in device memory.
  bool has_site_outputs() const { return library == "blas"; }

  // Returns the path of a file beside the sites file: sites.report.json for the ending ".report.json".
  std::string beside(const std::string& ending) const {
    const std::string suffix = ".json";
    const bool has_suffix = sites_file.size() > suffix.size() && sites_file.ends_with(suffix);
    return (has_suffix ? sites_file.substr(0, sites_file.size() - suffix.size()) : sites_file) + ending;
  }
};

// A call site, as the profiling run has recorded it.
struct TunedSite {
  std::string name;
  std::string module;
  std::string function;
  std::string type;  // s, d, c or z: the type of the site's first call
  std::int64_t calls = 0;
  double multiplications = 0;
  double seconds = 0;
  std::vector<std::string> callers;  // functions of the callers, the nearest first
  Json call_error;                   // error of its calls in the profiling run; null: not measured
  Json problems;                     // problems of the report
  std::vector<FlowInput> inputs;     // sites whose results it reads
  bool has_record = false;           // the compiler pass compiled the call
};

// Returns the functions of the call and of its callers; the site's name if the file has no symbol for the
// call.
std::string site_label(const TunedSite& site);

// A run of the program with the final levels, and with the inputs of another seed.
struct Validation {
  std::int64_t seed = 0;
  double error = 0;
  bool held = false;  // the error is within the limit
};

struct Tuning {
  std::vector<TunedSite> sites;
  std::vector<std::vector<Level>> levels;  // levels of each site
  std::vector<bool> is_searched;  // false: the site's share of the multiplications is below --min-share
  SearchProblem problem;
  SearchResult result;
  Json site_errors;            // site name -> error of the site's last output with the final levels
  Json call_errors;            // site name -> error of its calls with the final levels; {}: not measured
  std::int64_t runs_made = 0;  // runs of the program in this call, including the profile
  std::vector<Validation> validations;

  const Level& level(std::size_t site) const { return levels[site][result.levels[site]]; }
  // True if all validations held.
  bool held() const {
    return std::all_of(validations.begin(), validations.end(), std::mem_fn(&Validation::held));
  }
};

Tuning tune(const TuneRequest& request);

// Returns the sites file of the result.
Json configuration(const TuneRequest& request, const Tuning& tuning);

}  // namespace kintsugi::tools
