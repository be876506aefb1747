// The searches of the tuner over random error models: graphs, costs and limits.
#include "tools/tune/search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "tools/support.hpp"

namespace kintsugi::tools {

namespace {

constexpr std::size_t level_count = 4;
constexpr double level_cost[level_count] = {1, 0.45, 0.3, 0.15};

double uniform(std::mt19937_64& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random() >> 11) * 0x1p-53;
}
double normal(std::mt19937_64& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += uniform(random, 0, 1);
  return sum;
}

// A program whose error is the sum, or the root of the sum of squares, of one error for each site and level.
class Model {
 public:
  // `spread`: standard deviation of the logarithm of errors of sites of one role.
  Model(std::uint64_t seed, double spread) {
    std::mt19937_64 random(seed);
    const std::size_t sites = 6 + random() % 7;
    const std::size_t role_counts[] = {1, 2, 3, sites};
    const std::size_t roles = role_counts[random() % 4];
    const double size_spreads[] = {0, 0.3, 1};
    const double size_spread = size_spreads[random() % 3];
    const std::vector<double> errors[] = {
        {0, 3e-7, 3e-4, 3.6e-4}, {0, 1e-6, 1e-4, 1e-2}, {0, 1e-3, 2e-3, 4e-3}};
    const std::vector<double>& level_errors = errors[random() % 3];
    adds_squares_ = random() % 2 == 0;
    std::vector<double> gains(std::max(sites, roles));
    for (double& gain : gains) gain = std::exp(normal(random));
    for (std::size_t site = 0; site < sites; ++site) {
      const std::size_t role = roles < sites ? random() % roles : site;
      names.push_back("site " + std::to_string(site));
      problem.roles.push_back(role);
      problem.level_counts.push_back(level_count);
      problem.predecessors.emplace_back();
      for (std::size_t before = 0; before < site; ++before)
        if (uniform(random, 0, 1) < 2.0 / static_cast<double>(sites))
          problem.predecessors.back().push_back(before);
      const double gain = gains[role] * std::exp(spread * normal(random));
      errors_.emplace_back();
      for (const double error : level_errors) errors_.back().push_back(gain * error);
      sizes_.push_back(std::exp(size_spread * normal(random)));
    }
    const double least = 0.3 * outcome_of(Levels(sites, 1)).error;
    const double most = 1.2 * outcome_of(Levels(sites, level_count - 1)).error;
    problem.limit = std::exp(uniform(random, std::log(least), std::log(most)));
  }

  Outcome outcome_of(const Levels& levels) const {
    Outcome outcome;
    for (std::size_t site = 0; site < levels.size(); ++site) {
      const double error = errors_[site][levels[site]];
      outcome.error += adds_squares_ ? error * error : error;
      outcome.site_cost.push_back(sizes_[site] * level_cost[levels[site]]);
    }
    if (adds_squares_) outcome.error = std::sqrt(outcome.error);
    return outcome;
  }

  SearchProblem problem;
  std::vector<std::string> names;

 private:
  bool adds_squares_ = true;
  std::vector<std::vector<double>> errors_;  // indices: site, level
  std::vector<double> sizes_;
};

struct Found {
  SearchResult result;
  std::size_t runs = 0;
};

using SearchFunction = SearchResult (*)(const SearchProblem&, const std::vector<std::string>&,
                                        const Evaluate&);

// Runs a search; the program is not run twice with the same levels.
template <class Program>
Found run(SearchFunction search, const SearchProblem& problem, const std::vector<std::string>& names,
          const Program& program) {
  std::set<Levels> tried;
  Found found;
  found.result = search(problem, names, [&](const Levels& levels) {
    tried.insert(levels);
    return program(levels);
  });
  found.runs = tried.size();
  return found;
}
Found run(SearchFunction search, const Model& model) {
  return run(search, model.problem, model.names,
             [&](const Levels& levels) { return model.outcome_of(levels); });
}

// Sums over many models of runs and costs, of the search in groups relative to the greedy search.
struct Comparison {
  double runs = 0, mean_cost = 0, largest_cost = 0;
};
Comparison compare(double spread, bool with_roles = true) {
  constexpr std::uint64_t models = 600;
  Comparison all;
  double greedy_runs = 0;
  for (std::uint64_t seed = 1; seed <= models; ++seed) {
    Model model(seed, spread);
    if (!with_roles) std::iota(model.problem.roles.begin(), model.problem.roles.end(), std::size_t{0});
    const Found greedy = run(search_greedily, model), grouped = run(search_in_groups, model);
    EXPECT_LE(grouped.result.outcome.error, model.problem.limit) << seed;
    EXPECT_EQ(grouped.result.outcome.error, model.outcome_of(grouped.result.levels).error) << seed;
    EXPECT_NEAR(grouped.result.outcome.cost(), model.outcome_of(grouped.result.levels).cost(), 1e-12) << seed;
    all.runs += static_cast<double>(grouped.runs);
    greedy_runs += static_cast<double>(greedy.runs);
    const double cost = grouped.result.outcome.cost() / greedy.result.outcome.cost();
    all.mean_cost += cost / models;
    all.largest_cost = std::max(all.largest_cost, cost);
  }
  all.runs /= greedy_runs;
  ::testing::Test::RecordProperty("runs", std::to_string(all.runs));
  std::printf("spread %g%s: %.3f of the runs, %.4f of the cost on average, %.2f at most\n", spread,
              with_roles ? "" : ", no roles", all.runs, all.mean_cost, all.largest_cost);
  return all;
}

// A program of `sites` sites of one role with these errors of a level below the first one.
struct Plain {
  explicit Plain(const std::vector<double>& of_sites) : errors(of_sites) {
    for (std::size_t site = 0; site < errors.size(); ++site) names.push_back(std::to_string(site));
    problem.level_counts.assign(errors.size(), 2);
    problem.predecessors.resize(errors.size());
    problem.roles.assign(errors.size(), 0);
    problem.limit = 1;
  }
  Outcome operator()(const Levels& levels) const {
    Outcome outcome;
    for (std::size_t site = 0; site < levels.size(); ++site) {
      outcome.error = std::hypot(outcome.error, levels[site] == 0 ? 0 : errors[site]);
      outcome.site_cost.push_back(levels[site] == 0 ? 1 : 0.5);
    }
    return outcome;
  }
  Found search() const { return run(search_in_groups, problem, names, *this); }

  std::vector<double> errors;
  std::vector<std::string> names;
  SearchProblem problem;
};

}  // namespace

// ------------------------------------------------------------------ random models

TEST(SearchInGroups, KeepsTheLimitWithFewerRuns) {
  const Comparison all = compare(0.2);
  EXPECT_LE(all.runs, 0.7);
  EXPECT_LE(all.mean_cost, 1.02);
}

TEST(SearchInGroups, CostsLittleMoreWhereRolesSayLess) {
  const Comparison all = compare(1);
  EXPECT_LE(all.runs, 0.7);
  EXPECT_LE(all.mean_cost, 1.05);
}

TEST(SearchInGroups, RolesSaveRuns) {
  EXPECT_LE(compare(0.2).runs, 0.85 * compare(0.2, /*with_roles=*/false).runs);
}

// ------------------------------------------------------------------ rules

TEST(SearchInGroups, SitesThatHoldTogetherTakeOneRun) {
  const Found found = Plain(std::vector<double>(8, 0.1)).search();
  EXPECT_EQ(found.result.levels, Levels(8, 1));
  EXPECT_EQ(found.runs, 2u);
  EXPECT_EQ(found.result.steps.at(1).what, "lower 0, 1, 2 and 5 more");
  EXPECT_EQ(found.result.steps.at(1).lowered.size(), 8u);
}

TEST(SearchInGroups, ARoleThatExceedsTheLimitByFarIsTriedOnce) {
  const Found found = Plain(std::vector<double>(8, 10)).search();
  EXPECT_EQ(found.result.levels, Levels(8, 0));
  EXPECT_EQ(found.runs, 2u);
  EXPECT_THAT(found.result.kept_by_role, ::testing::Each(true));
}

TEST(SearchInGroups, AGroupIsSplitByWhatTheLimitHasRoomFor) {
  const Found found = Plain(std::vector<double>(8, 0.45)).search();  // four sites have an error of 0.9
  EXPECT_EQ(std::count(found.result.levels.begin(), found.result.levels.end(), 1u), 4);
  EXPECT_LE(found.runs, 7u);
}

TEST(SearchInGroups, OneBadSiteDoesNotKeepTheOthers) {
  for (std::size_t bad = 0; bad < 8; ++bad) {
    Plain program(std::vector<double>(8, 0.1));
    program.errors[bad] = 2;
    const Found found = program.search();
    Levels expected(8, 1);
    expected[bad] = 0;
    EXPECT_EQ(found.result.levels, expected) << bad;
  }
}

TEST(SearchInGroups, AnInfiniteErrorSaysNothingAboutARole) {
  Plain program(std::vector<double>(8, 0.1));
  program.errors[5] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(program.search().result.levels, (Levels{1, 1, 1, 1, 1, 0, 1, 1}));
}

TEST(SearchInGroups, LevelsThatAreNoCheaperAreLeftOut) {
  SearchProblem problem{.level_counts = {3, 3}, .predecessors = {{}, {}}, .limit = 1, .roles = {0, 0}};
  const auto program = [](const Levels& levels) {
    const double first[] = {1, 2, 0.5}, second[] = {1, 0.7, 0.6};
    return Outcome{0.1, {first[levels[0]], second[levels[1]]}};
  };
  const Found found = run(search_in_groups, problem, {"first", "second"}, program);
  EXPECT_EQ(found.result.levels, (Levels{2, 2}));
}

TEST(SearchInGroups, APredecessorIsRaised) {
  // The expensive site can be lowered only if the cheap one, which it reads, is not.
  SearchProblem problem{.level_counts = {2, 2}, .predecessors = {{}, {0}}, .limit = 1, .roles = {0, 1}};
  const auto program = [](const Levels& levels) {
    return Outcome{0.8 * static_cast<double>(levels[0]) + 0.9 * static_cast<double>(levels[1]),
                   {levels[0] == 0 ? 1 : 0.4, levels[1] == 0 ? 1.01 : 0.9}};
  };
  const Found greedy = run(search_greedily, problem, {"cheap", "expensive"}, program);
  const Found found = run(search_in_groups, problem, {"cheap", "expensive"}, program);
  EXPECT_LE(found.result.outcome.error, 1);
  EXPECT_LE(found.result.outcome.cost(), greedy.result.outcome.cost());
}

TEST(SearchInGroups, FirstLevelsBeyondTheLimitAreAFinding) {
  Plain program({1, 1});
  program.problem.limit = -1;
  EXPECT_THROW(program.search(), Finding);
}

}  // namespace kintsugi::tools
