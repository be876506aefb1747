// Candidates for contracts that no a-priori bound proves. They multiply residues. Either norms prove all
// elements of C before the product, or every element is checked after it.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// True if only checked programs meet the contract:
// - correct rounding,
// - the contracts of FP64 and double-double, since programs for them are proved only for narrow dynamic
//   ranges,
// - on a device, every contract that native does not meet, since a chain of candidates with windows must end
//   with native.
// False for a tolerance below the error of the last rounding, which no program meets.
bool needs_checks(const Plan& plan);

// True if no element needs a check because the fallback chain can consist of candidates that norms prove,
// followed by native. That holds for FP64 on a device whose own native kernel is as fast as the vendor
// library's, under a contract that native meets.
bool has_native_fallback(const Plan& plan);

// Returns candidates by residues of few moduli, which norms scale and prove; none unless the device's kernels
// exit early if their candidate is not selected. `more_moduli` has, for each candidate, how many moduli it
// has besides the least number.
std::vector<Candidate> norm_emulations(const Plan& plan, const std::vector<int>& more_moduli = {0, 2});

// Returns the checked candidates followed by the superaccumulator. All accept any dynamic range. On a device,
// candidates that norms prove precede them.
std::vector<Candidate> checked_emulations(const Plan& plan);

}  // namespace kintsugi::core
