#include "tune/search.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "support.hpp"
#include "tune/lowering_search.hpp"

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

class GreedySearch : LoweringSearch {
 public:
  GreedySearch(const SearchProblem& problem, const std::vector<std::string>& names, const Evaluate& evaluate)
      : LoweringSearch(problem, names, evaluate) {}

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
  result.kept_by_role.assign(problem.level_counts.size(), false);
  bool is_found = false;
  Levels levels(problem.level_counts.size(), 0);
  do {
    const Outcome outcome = evaluate(levels);
    const bool accepted =
        outcome.error <= problem.limit && (!is_found || outcome.cost() < result.outcome.cost());
    result.steps.push_back({levels, "combination", {}, outcome.error, outcome.cost(), accepted});
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
