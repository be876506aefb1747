// The search that lowers call sites in groups, by their roles in the program's data flow.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "tune/lowering_search.hpp"
#include "tune/search.hpp"

namespace kintsugi::tools {

namespace {

class GroupedSearch : LoweringSearch {
 public:
  GroupedSearch(const SearchProblem& problem, const std::vector<std::string>& names, const Evaluate& evaluate)
      : LoweringSearch(problem, names, evaluate), costs_(names.size()) {}

  SearchResult run() {
    start();
    for (Group group = costliest_sites(); !group.empty(); group = costliest_sites()) lower(group);
    return std::move(result_);
  }

 private:
  using Group = std::vector<std::size_t>;
  enum class Trial { accepted, no_cheaper, beyond_limit };

  double cost(std::size_t site) const { return result_.outcome.site_cost[site]; }

  // Returns the next level that is cheaper than the site's level, or whose cost is not known yet.
  std::optional<std::size_t> next_level(std::size_t site) const {
    for (std::size_t level = result_.levels[site] + 1; level < problem_.level_counts[site]; ++level) {
      const auto known = costs_[site].find(level);
      if (known == costs_[site].end() || known->second < cost(site)) return level;
    }
    return std::nullopt;
  }

  // Cheaper sites than a quarter of the costliest one wait, so that they do not use up the error that the
  // limit has room for.
  Group costliest_sites() const {
    constexpr double least_share = 0.25;
    Group group;
    double most = 0;
    for (std::size_t site = 0; site < names_.size(); ++site) {
      if (keeps_[site] || !next_level(site)) continue;
      group.push_back(site);
      most = std::max(most, cost(site));
    }
    std::erase_if(group, [&](std::size_t site) { return cost(site) < least_share * most; });
    std::stable_sort(group.begin(), group.end(), [&](std::size_t one, std::size_t other) {
      return cost(one) != cost(other) ? cost(one) > cost(other) : problem_.roles[one] < problem_.roles[other];
    });
    return group;
  }

  void lower(Group group) {
    std::size_t size = group.size();
    while (true) {
      drop_hopeless(group);
      if (group.empty()) return;
      size = std::clamp<std::size_t>(size, 1, group.size());
      const auto end = group.begin() + static_cast<std::ptrdiff_t>(size);
      const Group tried(group.begin(), end);
      Levels levels = result_.levels;
      for (const std::size_t site : tried) levels[site] = *next_level(site);
      Outcome outcome;
      switch (try_group(tried, levels, outcome)) {
        case Trial::no_cheaper: break;  // Some sites have another next level now.
        case Trial::accepted:
          group.erase(group.begin(), end);
          size *= 2;
          break;
        case Trial::beyond_limit:
          if (size > 1) {
            size = smaller(size, outcome);
            break;
          }
          if (can_be_balanced(outcome) && raise_predecessor(tried.front(), levels)) return;
          keeps_[tried.front()] = true;
          group.erase(group.begin());
      }
    }
  }

  // Drops the sites that have no cheaper level, and those that other sites of their role speak for.
  void drop_hopeless(Group& group) {
    for (const std::size_t site : group) {
      const auto level = next_level(site);
      result_.kept_by_role[site] = level && is_expected_to_fail(site, *level);
      if (!level || result_.kept_by_role[site]) keeps_[site] = true;
    }
    std::erase_if(group, [&](std::size_t site) { return keeps_[site]; });
  }

  Trial try_group(const Group& group, const Levels& levels, Outcome& outcome) {
    outcome = evaluate_(levels);
    for (const std::size_t site : group) costs_[site].try_emplace(levels[site], outcome.site_cost[site]);
    keep_costs(levels, outcome);
    const bool is_cheaper = std::all_of(
        group.begin(), group.end(), [&](std::size_t site) { return outcome.site_cost[site] < cost(site); });
    const bool accepted = is_cheaper && outcome.error <= problem_.limit;
    note(levels, "lower " + names_of(group), outcome, accepted);
    if (accepted) {
      result_.levels = levels;
      result_.outcome = outcome;
      return Trial::accepted;
    }
    if (!is_cheaper) return Trial::no_cheaper;
    learn(group, levels, outcome);
    return Trial::beyond_limit;
  }

  // A level keeps the cost that was measured first. Measured times vary from run to run, which must not
  // decide.
  void keep_costs(const Levels& levels, Outcome& outcome) const {
    for (std::size_t site = 0; site < levels.size(); ++site) {
      const auto known = costs_[site].find(levels[site]);
      if (levels[site] == result_.levels[site])
        outcome.site_cost[site] = cost(site);
      else if (known != costs_[site].end())
        outcome.site_cost[site] = known->second;
    }
  }

  // ---------------------------------------------------------------- errors

  // Errors of sites are taken as independent: their squares add up.
  double room() const { return square(problem_.limit) - square(result_.outcome.error); }
  double added(const Outcome& outcome) const { return square(outcome.error) - square(result_.outcome.error); }
  static double square(double value) { return value * value; }

  // Keeps the mean square of the errors that the sites of the group add at these levels, if all sites have
  // one role and level.
  void learn(const Group& group, const Levels& levels, const Outcome& outcome) {
    if (!std::isfinite(outcome.error)) return;  // The program failed, by whichever site.
    const auto key = [&](std::size_t site) { return std::pair(problem_.roles[site], levels[site]); };
    if (std::all_of(group.begin(), group.end(),
                    [&](std::size_t site) { return key(site) == key(group.front()); }))
      role_errors_[key(group.front())] = added(outcome) / static_cast<double>(group.size());
  }

  bool is_expected_to_fail(std::size_t site, std::size_t level) const {
    constexpr double least_excess = 9;
    const auto known = role_errors_.find({problem_.roles[site], level});
    return known != role_errors_.end() && known->second > least_excess * room();
  }

  // Returns the number of sites that the limit has room for by a group of `size` sites that exceeded it, at
  // most half of them, at least one.
  std::size_t smaller(std::size_t size, const Outcome& outcome) const {
    const double half = static_cast<double>(size / 2);
    if (!std::isfinite(outcome.error)) return size / 2;
    const double fitting = static_cast<double>(size) * room() / added(outcome);
    return static_cast<std::size_t>(std::clamp(std::floor(fitting), 1.0, half));
  }

  // True if the limit would hold without the errors of all other sites.
  bool can_be_balanced(const Outcome& outcome) const { return added(outcome) <= square(problem_.limit); }

  std::string names_of(const Group& group) const {
    constexpr std::size_t most_names = 3;
    std::string text;
    for (std::size_t i = 0; i < std::min(group.size(), most_names); ++i)
      text += (text.empty() ? "" : ", ") + names_[group[i]];
    if (group.size() > most_names) text += fmt::format(" and {} more", group.size() - most_names);
    return text;
  }

  std::vector<std::map<std::size_t, double>>
      costs_;  // of each site, by level: the cost that was measured first
  std::map<std::pair<std::size_t, std::size_t>, double> role_errors_;  // by role and level
};

}  // namespace

SearchResult search_in_groups(const SearchProblem& problem, const std::vector<std::string>& names,
                              const Evaluate& evaluate) {
  return GroupedSearch(problem, names, evaluate).run();
}

}  // namespace kintsugi::tools
