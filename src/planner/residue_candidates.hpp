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

// ---------------------------------------------------------------- reproducible

// The fallback chain of the accuracy `reproducible`: bits of C that depend on operands and scalars alone.
//
//   a' = RN(2^s_i a)  with max_p |a'_ip| < 2^51 - 2^44          likewise the columns of B
//   C  = RN(alpha 2^-(s_i + t_j) sum over p of a'_ip b'_pj + beta C)      exact but for this rounding
//
// The integers and the rounding are the same for both schemes: words of 52 bits (int52) and residues
// (ozaki2). The exponents of its row of A and column of B decide for each element of C whether this grid
// keeps the contract of the operands' type. If it does not, the element is correctly rounded, which gives the
// same bits by every program.

// Returns a candidate on the grid, followed by the candidates of `exact`. The grid's scheme is the named one
// (int52 or ozaki2), or the one that is faster on the engine. Double-double operands have only the candidates
// of `exact`. Fails with contract_unreachable under the policy native or with another scheme, and with
// not_supported on a device.
std::vector<Candidate> reproducible_candidates(const Plan& plan);

}  // namespace kintsugi::core
