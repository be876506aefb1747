// docs/results/claims.json inside the program: the claims with their criteria, and verdicts by them.
#pragma once

#include <string>
#include <vector>

#include "support.hpp"

namespace kintsugi::tools {

// What was measured for one series of a claim.
struct SeriesValues {
  std::string name;
  std::vector<double> values;
};
using Measured = std::vector<SeriesValues>;

struct Judgement {
  std::string verdict;  // of rules.verdicts
  std::string why;      // which series miss the criterion, or why there is no verdict; "" where it agrees
};

// All claims, in the registry's order.
const Json& registered_claims();
// Fails where no claim has the id: a mistake of ours.
const Json& registered_claim(const std::string& id);

// Whether values meet a criterion of rules.forms.
bool meets(const Json& criterion, const std::vector<double>& values);

// The verdict that the registry's rules give. Series that the claim does not list are a mistake of ours.
Judgement judge(const Json& claim, const Measured& measured);

// The values in words, by series; "none" where there are none.
std::string measured_text(const Measured& measured);

}  // namespace kintsugi::tools
