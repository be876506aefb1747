// Candidates for contracts that no a-priori bound proves: residues whose elements are checked, or that norms
// prove.
#pragma once

#include <vector>

#include "planner/plan.hpp"

namespace kintsugi::core {

// True if only checked programs meet the contract: correct rounding, FP64's and double-double's contracts,
// whose integers are proved for narrow ranges alone, and on a device every contract that its native product
// does not meet, since native computes what lies outside the windows. The last rounding alone must meet the
// contract.
bool needs_checks(const Plan& plan);

// True if the device's own native kernel, as fast as the vendor library's, can follow candidates that norms
// prove, and native products meet the contract: no element has to be checked then.
bool has_native_fallback(const Plan& plan);

// Returns candidates by residues of few moduli, scaled by norms, on a device where kernels of a candidate
// that is not selected exit early. `widest`: number of moduli of a third candidate, if more than the others
// have.
std::vector<Candidate> norm_emulations(const Plan& plan, int widest = 0);

// Returns residues whose elements are checked, and the superaccumulator: they accept any dynamic range. On a
// device the candidates that norms prove come before them.
std::vector<Candidate> checked_emulations(const Plan& plan);

}  // namespace kintsugi::core
