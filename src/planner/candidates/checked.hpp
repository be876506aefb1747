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

// Returns two candidates by residues of few moduli, which are scaled and proved by norms. A third candidate
// with `third_moduli` moduli follows if that is more than the second one has. Returns none if the device's
// kernels do not exit early when another candidate is selected.
std::vector<Candidate> norm_emulations(const Plan& plan, int third_moduli = 0);

// Returns the checked candidates followed by the superaccumulator. All accept any dynamic range. On a device,
// candidates that norms prove precede them.
std::vector<Candidate> checked_emulations(const Plan& plan);

}  // namespace kintsugi::core
