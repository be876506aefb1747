// Request of `kintsugi tune-program`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace kintsugi::tools
