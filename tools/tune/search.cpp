#include "tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "support.hpp"

namespace kintsugi::tools {

namespace {

// Advances `levels` to the next combination; the last site's level changes fastest. Returns false after the
// last combination.
bool next_levels(const SearchProblem& problem, Levels& levels) {
  for (std::size_t site = levels.size(); site-- > 0;) {
    if (++levels[site] < problem.level_counts[site]) return true;
    levels[site] = 0;
  }
  return false;
}

// Base of the searches that begin with the most accurate levels.
class Search {
 protected:
  Search(const SearchProblem& problem, const std::vector<std::string>& names, const Evaluate& evaluate)
      : problem_(problem), names_(names), evaluate_(evaluate) {}

  void start() {
    result_.levels.assign(names_.size(), 0);
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
    result_.steps.push_back({levels, what, outcome.error, outcome.cost(), accepted});
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

class GreedySearch : Search {
 public:
  GreedySearch(const SearchProblem& problem, const std::vector<std::string>& names, const Evaluate& evaluate)
      : Search(problem, names, evaluate), keeps_(names.size(), false) {}

  SearchResult run() {
    start();
    while (const auto site = costliest_that_can_lower()) lower(*site);
    return std::move(result_);
  }

 private:
  bool can_lower(const Levels& levels, std::size_t site) const {
    return levels[site] + 1 < problem_.level_counts[site];
  }

  std::optional<std::size_t> costliest_that_can_lower() const {
    std::optional<std::size_t> found;
    for (std::size_t site = 0; site < names_.size(); ++site) {
      if (keeps_[site] || !can_lower(result_.levels, site)) continue;
      if (!found || result_.outcome.site_cost[site] > result_.outcome.site_cost[*found]) found = site;
    }
    return found;
  }

  // Lowers the site level by level until a step is accepted. If none is, the site keeps its level.
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

class EstimatedSearch : Search {
 public:
  EstimatedSearch(const SearchProblem& problem, const std::vector<std::string>& names,
                  const Evaluate& evaluate)
      : Search(problem, names, evaluate) {}

  SearchResult run() {
    start();
    first_error_ = result_.outcome.error;
    first_cost_ = result_.outcome.site_cost;
    for (std::size_t site = 0; site < names_.size(); ++site) measure(site);
    for (std::size_t tries = 2 * names_.size(); tries > 0; --tries) {
      const auto levels = cheapest();
      if (!levels) break;
      try_and_correct(*levels);
    }
    return std::move(result_);
  }

 private:
  struct Estimate {
    double error, cost;
  };

  // Runs the program with each level of the site; all other sites have their most accurate level.
  void measure(std::size_t site) {
    alone_.push_back({{0, first_cost_[site]}});
    for (std::size_t level = 1; level < problem_.level_counts[site]; ++level) {
      Levels levels(names_.size(), 0);
      levels[site] = level;
      Outcome outcome;
      try_levels(levels, "only " + names_[site], outcome);
      alone_.back().push_back({outcome.error, outcome.site_cost[site]});
    }
  }

  Estimate estimate(const Levels& levels) const {
    double squares = first_error_ * first_error_, cost = 0;
    for (std::size_t site = 0; site < levels.size(); ++site) {
      const Estimate& one = alone_[site][levels[site]];
      squares += one.error * one.error;
      cost += one.cost;
    }
    return {std::sqrt(squares), cost};
  }

  // Returns the combination with the lowest estimated cost among those that have not been tried, have an
  // estimated error within the limit, and are cheaper than the best so far.
  std::optional<Levels> cheapest() const {
    std::optional<Levels> found;
    double least = result_.outcome.cost();
    Levels levels(names_.size(), 0);
    do {
      const Estimate estimated = estimate(levels);
      if (!(estimated.cost < least) || !(estimated.error * correction_ <= problem_.limit)) continue;
      if (tried_.contains(levels)) continue;
      found = levels;
      least = estimated.cost;
    } while (next_levels(problem_, levels));
    return found;
  }

  void try_and_correct(const Levels& levels) {
    Outcome outcome;
    tried_.insert(levels);
    try_levels(levels, "combination", outcome);
    const bool holds = outcome.error <= problem_.limit;
    const double estimated = estimate(levels).error;
    if (!(estimated > 0) || !std::isfinite(outcome.error)) return;
    const double ratio = outcome.error / estimated;
    correction_ = holds ? ratio : std::max(correction_, ratio);
  }

  double first_error_ = 0;
  std::vector<double> first_cost_;
  // Factor on estimated errors. It begins below 1, because errors usually cancel in part. If they do not, the
  // first run corrects the factor.
  double correction_ = 0.8;
  std::vector<std::vector<Estimate>> alone_;  // indices: site, level
  std::set<Levels> tried_;
};

}  // namespace

SearchResult search_greedily(const SearchProblem& problem, const std::vector<std::string>& names,
                             const Evaluate& evaluate) {
  return GreedySearch(problem, names, evaluate).run();
}

SearchResult search_by_estimate(const SearchProblem& problem, const std::vector<std::string>& names,
                                const Evaluate& evaluate) {
  return EstimatedSearch(problem, names, evaluate).run();
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
