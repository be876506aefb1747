// Tunes a program: profiling run, reference run, search, validation.
#pragma once

#include <string>
#include <vector>

#include "tune/program.hpp"
#include "tune/search.hpp"

namespace kintsugi::tools {

// A run of the program with the final levels, and with the inputs of another seed.
struct Validation {
  std::int64_t seed = 0;
  double error = 0;
  bool held = false;  // the error is within the limit
};

struct Tuning {
  std::vector<TunedSite> sites;
  std::vector<std::vector<Level>> levels;  // levels of each site
  std::vector<bool> is_searched;  // false: the site's share of the multiplications is below --min-share
  SearchProblem problem;
  SearchResult result;
  Json site_errors;            // site name -> error of the site's last output with the final levels
  Json call_errors;            // site name -> error of its calls with the final levels; {}: not measured
  std::int64_t runs_made = 0;  // runs of the program in this call, including the profile
  std::vector<Validation> validations;

  const Level& level(std::size_t site) const { return levels[site][result.levels[site]]; }
  bool held() const;  // true if all validations held
};

Tuning tune(const TuneRequest& request);

// Returns the sites file of the result.
Json configuration(const TuneRequest& request, const Tuning& tuning);

}  // namespace kintsugi::tools
