#include "tune/search.hpp"

#include <algorithm>
#include <numeric>

#include "support.hpp"

namespace kintsugi::tools {

namespace {

class GreedySearch {
 public:
  GreedySearch(const SearchProblem& problem, const std::vector<std::string>& names, const Evaluate& evaluate)
      : problem_(problem), names_(names), evaluate_(evaluate), keeps_(names.size(), false) {}

  SearchResult run() {
    start();
    while (const auto site = costliest_open()) lower(*site);
    return std::move(result_);
  }

 private:
  void start() {
    result_.levels.assign(names_.size(), 0);
    result_.outcome = evaluate_(result_.levels);
    note(result_.levels, "start", result_.outcome, true);
    if (result_.outcome.error <= problem_.limit) return;
    throw Finding(fmt::format(
        "--limit {}: the most accurate levels already have the error {:.3g} relative to the reference; "
        "if they are those of the reference, the program's results differ from run to run",
        problem_.limit, result_.outcome.error));
  }

  bool can_lower(const Levels& levels, std::size_t site) const {
    return levels[site] + 1 < problem_.level_counts[site];
  }

  std::optional<std::size_t> costliest_open() const {
    std::optional<std::size_t> found;
    for (std::size_t site = 0; site < names_.size(); ++site) {
      if (keeps_[site] || !can_lower(result_.levels, site)) continue;
      if (!found || result_.outcome.site_cost[site] > result_.outcome.site_cost[*found]) found = site;
    }
    return found;
  }

  void note(const Levels& levels, const std::string& what, const Outcome& outcome, bool accepted) {
    result_.steps.push_back({levels, what, outcome.error, outcome.cost(), accepted});
  }

  // Takes the levels if they hold the limit and are cheaper.
  bool try_levels(const Levels& levels, const std::string& what, Outcome& outcome) {
    outcome = evaluate_(levels);
    const bool accepted = outcome.error <= problem_.limit && outcome.cost() < result_.outcome.cost();
    note(levels, what, outcome, accepted);
    if (accepted) {
      result_.levels = levels;
      result_.outcome = outcome;
    }
    return accepted;
  }

  // Lowers the site by as many levels as it takes to become cheaper.
  void lower(std::size_t site) {
    Levels lowered = result_.levels;
    while (can_lower(lowered, site)) {
      ++lowered[site];
      Outcome outcome;
      if (try_levels(lowered, "lower " + names_[site], outcome)) return;
      if (outcome.error > problem_.limit) {
        if (raise_predecessor(site, lowered)) return;
        break;
      }
    }
    keeps_[site] = true;
  }

  bool raise_predecessor(std::size_t site, const Levels& lowered) {
    for (const std::size_t before : problem_.predecessors[site]) {
      const bool is_cheaper = result_.outcome.site_cost[before] < result_.outcome.site_cost[site];
      if (before == site || lowered[before] == 0 || !is_cheaper) continue;
      Levels raised = lowered;
      --raised[before];
      Outcome outcome;
      if (!try_levels(raised, fmt::format("lower {}, raise {}", names_[site], names_[before]), outcome))
        continue;
      // The errors of other sites count anew; the raised one keeps its level, else it would only be lowered again.
      std::fill(keeps_.begin(), keeps_.end(), false);
      keeps_[before] = true;
      return true;
    }
    return false;
  }

  const SearchProblem& problem_;
  const std::vector<std::string>& names_;
  const Evaluate& evaluate_;
  std::vector<bool> keeps_;
  SearchResult result_;
};

// The next combination, the last site's level first; false after the last one.
bool next_levels(const SearchProblem& problem, Levels& levels) {
  for (std::size_t site = levels.size(); site-- > 0;) {
    if (++levels[site] < problem.level_counts[site]) return true;
    levels[site] = 0;
  }
  return false;
}

}  // namespace

double Outcome::cost() const { return std::accumulate(site_cost.begin(), site_cost.end(), 0.0); }

SearchResult search_greedily(const SearchProblem& problem, const std::vector<std::string>& names,
                             const Evaluate& evaluate) {
  return GreedySearch(problem, names, evaluate).run();
}

SearchResult search_exhaustively(const SearchProblem& problem, const Evaluate& evaluate) {
  SearchResult result;
  bool is_found = false;
  Levels levels(problem.level_counts.size(), 0);
  do {
    const Outcome outcome = evaluate(levels);
    const bool accepted =
        outcome.error <= problem.limit && (!is_found || outcome.cost() < result.outcome.cost());
    result.steps.push_back({levels, "combination", outcome.error, outcome.cost(), accepted});
    if (!accepted) continue;
    is_found = true;
    result.levels = levels;
    result.outcome = outcome;
  } while (next_levels(problem, levels));
  if (!is_found)
    throw Finding(
        fmt::format("--limit {}: no combination of levels holds it, not even that of the most accurate ones",
                    problem.limit));
  return result;
}

double combinations(const SearchProblem& problem) {
  return std::accumulate(
      problem.level_counts.begin(), problem.level_counts.end(), 1.0,
      [](double product, std::size_t count) { return product * static_cast<double>(count); });
}

}  // namespace kintsugi::tools
