// Runs the tuned program under the drop-in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support.hpp"
#include "tune/request.hpp"

namespace kintsugi::tools {

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
  std::vector<std::pair<std::string, std::int64_t>> inputs;  // a site, and the calls that read its result
};

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

class Program {
 public:
  explicit Program(const TuneRequest& request);

  // Runs the program. `rules`: member `sites` of the sites file.
  ProgramRun run(const Json& rules, const RunOptions& options) const;

  // Returns the absolute path of a file in the work folder. Makes the folder if it does not exist.
  std::string work_file(const std::string& name) const;
  void remove_work() const;

 private:
  Json sites_file(const Json& rules, const RunOptions& options) const;
  std::vector<std::string> environment(std::optional<std::int64_t> seed) const;

  const TuneRequest& request_;
  std::string preload_;
  std::string work_;
};

std::vector<TunedSite> sites_of(const Json& report_sites);

// Returns the functions of the call and of its callers; the site's name if the file has no symbol for the
// call.
std::string site_label(const TunedSite& site);

// Returns the rule for a level, as a sites file has it.
Json rule_of(const Level& level);

// Returns the levels that a site can run: the levels of the request, or the default levels of the site's
// type. Levels that the library has no plan for are left out.
std::vector<Level> levels_for(const TuneRequest& request, const TunedSite& site);

}  // namespace kintsugi::tools
