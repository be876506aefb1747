// The search for the cheapest levels of all call sites under an error limit: MixPert section 3.4.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kintsugi::tools {

// The level of every site; 0 is the most accurate.
using Levels = std::vector<std::size_t>;

struct Outcome {
  double error = 0;               // infinite where the program failed
  std::vector<double> site_cost;  // cost of each site

  double cost() const;
};

struct SearchProblem {
  std::vector<std::size_t> level_counts;  // number of levels of each site
  std::vector<std::vector<std::size_t>>
      predecessors;  // sites whose results a site reads, the most read first
  double limit = 0;
};

struct Step {
  Levels levels;
  std::string what;  // "start", "lower solve_panel", ...
  double error = 0;
  double cost = 0;
  bool accepted = false;
};

struct SearchResult {
  Levels levels;
  Outcome outcome;
  std::vector<Step> steps;
};

// Runs the program with these levels, or knows from an earlier run.
using Evaluate = std::function<Outcome(const Levels&)>;

// Begins with every site at its most accurate level and lowers the site that costs most. A step is accepted
// if the limit holds and the program is cheaper. Where a level is no cheaper, the site's next one is tried;
// where the limit breaks, the same together with one cheaper, lowered predecessor raised by a level; else the
// site keeps its level. Ends when every site keeps its level. `names`: of the sites, for the steps. Fails
// with a Finding if the first levels break the limit.
SearchResult search_greedily(const SearchProblem& problem, const std::vector<std::string>& names,
                             const Evaluate& evaluate);

// Lowers every site alone to each of its levels, and takes the error of a combination as the root of the sum
// of these errors' squares, its cost as the sum of the sites' costs. Then tries the cheapest combination
// whose estimate holds the limit, corrects the estimate by what it finds, and goes on until none is cheaper,
// or for two runs a site.
SearchResult search_by_estimate(const SearchProblem& problem, const std::vector<std::string>& names,
                                const Evaluate& evaluate);

// Tries all combinations.
SearchResult search_exhaustively(const SearchProblem& problem, const Evaluate& evaluate);
double combinations(const SearchProblem& problem);

}  // namespace kintsugi::tools
