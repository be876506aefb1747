// Bases of the searches that begin with the most accurate levels and lower them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "tune/search.hpp"

namespace kintsugi::tools {

class Search {
 protected:
  Search(const SearchProblem& problem, const std::vector<std::string>& names, const Evaluate& evaluate)
      : problem_(problem), names_(names), evaluate_(evaluate) {}

  void start() {
    result_.levels.assign(names_.size(), 0);
    result_.kept_by_role.assign(names_.size(), false);
    result_.outcome = evaluate_(result_.levels);
    constexpr bool accepted = true;
    note(result_.levels, "start", result_.outcome, accepted);
    if (result_.outcome.error <= problem_.limit) return;
    throw Finding(fmt::format(
        "--limit {}: the most accurate levels already have the error {:.3g} relative to the reference; "
        "if they are those of the reference, the program's results differ from run to run",
        problem_.limit, result_.outcome.error));
  }

  void note(const Levels& levels, const std::string& what, const Outcome& outcome, bool accepted) {
    std::vector<std::size_t> lowered;
    for (std::size_t site = 0; site < levels.size(); ++site)
      if (levels[site] > result_.levels[site]) lowered.push_back(site);
    result_.steps.push_back({levels, what, lowered, outcome.error, outcome.cost(), accepted});
  }

  // Runs the program with these levels, and accepts them if the error is within the limit and the cost is
  // lower than that of the best levels so far. A site whose level is unchanged keeps its cost: its measured
  // time varies from run to run, which must not decide.
  bool try_levels(const Levels& levels, const std::string& what, Outcome& outcome) {
    outcome = evaluate_(levels);
    for (std::size_t site = 0; site < levels.size(); ++site)
      if (levels[site] == result_.levels[site]) outcome.site_cost[site] = result_.outcome.site_cost[site];
    const bool accepted = outcome.error <= problem_.limit && outcome.cost() < result_.outcome.cost();
    note(levels, what, outcome, accepted);
    if (accepted) {
      result_.levels = levels;
      result_.outcome = outcome;
    }
    return accepted;
  }

  const SearchProblem& problem_;
  const std::vector<std::string>& names_;
  const Evaluate& evaluate_;
  SearchResult result_;
};

// Base of the searches that lower sites until every site keeps its level.
class LoweringSearch : protected Search {
 protected:
  LoweringSearch(const SearchProblem& problem, const std::vector<std::string>& names,
                 const Evaluate& evaluate)
      : Search(problem, names, evaluate), keeps_(names.size(), false) {}

  // Tries the levels `lowered`, which exceed the limit, with one cheaper predecessor of the site raised by a
  // level. Returns false if no such step is accepted.
  bool raise_predecessor(std::size_t site, const Levels& lowered) {
    for (const std::size_t before : problem_.predecessors[site]) {
      const bool is_cheaper = result_.outcome.site_cost[before] < result_.outcome.site_cost[site];
      if (before == site || lowered[before] == 0 || !is_cheaper) continue;
      Levels raised = lowered;
      --raised[before];
      Outcome outcome;
      if (!try_levels(raised, fmt::format("lower {}, raise {}", names_[site], names_[before]), outcome))
        continue;
      // The error has changed, so all sites but the raised one may be lowered again.
      std::fill(keeps_.begin(), keeps_.end(), false);
      keeps_[before] = true;
      return true;
    }
    return false;
  }

  std::vector<bool> keeps_;
};

}  // namespace kintsugi::tools
