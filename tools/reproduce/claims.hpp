// The registry of claims (lab/results/claims.json, embedded in the program), and verdicts by its criteria.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// Measured values of one series of a claim.
struct SeriesValues {
  std::string name;
  std::vector<double> values;
};
using Measured = std::vector<SeriesValues>;

struct Judgement {
  std::string verdict;  // one of rules.verdicts
  std::string
      why;  // series that miss the criterion, or the reason why there is no verdict; "" if the claim agrees
};

// Returns all claims, in the registry's order.
const Json& registered_claims();
// Returns the claim with the id; fails if there is none, which is an error in the program.
const Json& registered_claim(const std::string& id);

// True if the values meet the criterion, which has one of the forms of rules.forms; false if there is no
// value.
bool meets(const Json& criterion, const std::vector<double>& values);

// Returns the verdict by the registry's rules. Fails for series that the claim does not list, which is an
// error in the program.
Judgement judge(const Json& claim, const Measured& measured);

// Returns the values as text, by series; "none" if there are none.
std::string measured_text(const Measured& measured);

}  // namespace kintsugi::tools
