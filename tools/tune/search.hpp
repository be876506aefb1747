// The search for the cheapest levels of all call sites under an error limit: MixPert section 3.4.
#pragma once

#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace kintsugi::tools {

// One level for each site; level 0 is the most accurate.
using Levels = std::vector<std::size_t>;

struct Outcome {
  double error = 0;               // infinite if the program failed
  std::vector<double> site_cost;  // cost of each site

  double cost() const { return std::accumulate(site_cost.begin(), site_cost.end(), 0.0); }
};

struct SearchProblem {
  std::vector<std::size_t> level_counts;  // number of levels of each site
  std::vector<std::vector<std::size_t>>
      predecessors;  // for each site: the sites whose results it reads, the most frequent first
  double limit = 0;
  // A number for each site. Sites with the same number have the same role in the program's data flow, so
  // similar errors are expected of them. Empty: the data flow is known in part only.
  std::vector<std::size_t> roles = {};
};

struct Step {
  Levels levels;
  std::string what;                  // "start", "lower solve_panel", ...
  std::vector<std::size_t> lowered;  // sites that this step lowers together
  double error = 0;
  double cost = 0;
  bool accepted = false;
};

struct SearchResult {
  Levels levels;
  Outcome outcome;
  std::vector<Step> steps;
  std::vector<bool> kept_by_role;  // sites whose next level was only tried by other sites of their role
};

// Returns the outcome of the program with these levels. The program is not run twice with the same levels.
using Evaluate = std::function<Outcome(const Levels&)>;

// MixPert's search. Begins with every site at its most accurate level, then repeatedly lowers the site that
// costs most. A step is accepted if the error is within the limit and the program becomes cheaper.
// - If the step is not cheaper, the site's next level is tried.
// - If the step exceeds the limit, it is tried again with one predecessor raised by a level. The predecessor
//   must be cheaper than the site, and lowered before.
// - If no step is accepted, the site keeps its level.
// The search ends when every site keeps its level. `names`: names of the sites, for the descriptions of
// steps. Throws a Finding if the most accurate levels exceed the limit.
SearchResult search_greedily(const SearchProblem& problem, const std::vector<std::string>& names,
                             const Evaluate& evaluate);

// The same with fewer runs: sites are lowered in groups. Needs the sites' roles.
// - A group is the costliest site and all that cost at least a quarter as much, the costliest first. All of
//   them are lowered at once, each by a level. A level that turns out to be no cheaper is left out.
// - If the group exceeds the limit, its first sites are tried alone: at most half of them, and not more than
//   the limit has room for if all have the same error. If they are accepted, twice as many follow.
// - If sites of one role exceed the limit, and their errors are on average more than three times what the
//   limit has room for, all sites of that role keep their level.
// - For a single site a predecessor is raised as above, unless the site's own error exceeds the limit.
SearchResult search_in_groups(const SearchProblem& problem, const std::vector<std::string>& names,
                              const Evaluate& evaluate);

// Measures every level of every site alone, with all other sites at their most accurate level. The estimated
// error of a combination is the root of the sum of the squares of these errors; its estimated cost is the sum
// of the sites' costs. Then runs the cheapest combination whose estimated error is within the limit, corrects
// the estimate by the measured error, and repeats. Ends when no combination is expected to be cheaper, or
// after two runs for each site.
SearchResult search_by_estimate(const SearchProblem& problem, const std::vector<std::string>& names,
                                const Evaluate& evaluate);

// Tries all combinations.
SearchResult search_exhaustively(const SearchProblem& problem, const Evaluate& evaluate);
double combinations(const SearchProblem& problem);

}  // namespace kintsugi::tools
