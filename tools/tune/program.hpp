// Runs of the tuned program under the drop-in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support.hpp"
#include "tune/request.hpp"

namespace kintsugi::tools {

// A call site as the profile saw it.
struct TunedSite {
  std::string name;
  std::string module;
  std::string function;
  std::string type;  // s, d, c or z: that of its first call
  std::int64_t calls = 0;
  double multiplications = 0;
  double seconds = 0;
  Json problems;                                             // problems of the report
  std::vector<std::pair<std::string, std::int64_t>> inputs;  // sites, and calls that read their results
};

struct ProgramRun {
  int status = 0;      // exit status; 128 and the signal's number where one ended the program
  Json sites;          // sites of the report; null if there is no report
  std::string output;  // last line that the program printed, for messages
};

class Program {
 public:
  explicit Program(const TuneRequest& request);

  // Runs the program. `rules`: the member `sites` of the sites file. `outputs`: the folder, in the work
  // folder, for the sites' last outputs; "": none. `seed`: KINTSUGI_TUNE_SEED, where it is set.
  ProgramRun run(const Json& rules, const std::string& outputs, std::optional<std::int64_t> seed) const;

  // Returns an absolute path in the work folder, which is made where there is none.
  std::string work_file(const std::string& name) const;
  void remove_work() const;

 private:
  std::vector<std::string> environment(std::optional<std::int64_t> seed) const;

  const TuneRequest& request_;
  std::string preload_;
  std::string work_;
};

std::vector<TunedSite> sites_of(const Json& report_sites);

// Returns the rule of a level in a sites file.
Json rule_of(const Level& level);

// Returns the levels of a site: those of the request, or of its type, for which there is a plan.
std::vector<Level> levels_for(const TuneRequest& request, const TunedSite& site);

}  // namespace kintsugi::tools
